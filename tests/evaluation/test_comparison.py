import copy
import math
from dataclasses import replace
from typing import ClassVar

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import GcnslError, TrainingDiverged
from gcnsl.evaluation import paired_difference
from gcnsl.evaluation.comparison import (
    Comparison,
    ComparisonInterrupted,
    Reached,
    compare,
)
from gcnsl.evaluation.statistics import paired_differences
from gcnsl.graph import split_masks
from gcnsl.graph.masks import MASKS
from gcnsl.methods import fit, prepare
from gcnsl.runs.executor import HERE
from gcnsl.training import METRICS

from ..runs.fake_executor import FakeExecutor
from .fake_methods import FakeConfig, fake

DATA = with_random_split(synthetic(n=90, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=4)
TWO = {"mlp": fake("mlp"), "gcn": fake("gcn").with_options(epochs=6, lr=0.5)}


def reached(metric: str = "accuracy", **values) -> dict[str, dict[int, Reached]]:
    return {name: {run: Reached({metric: v}) for run, v in enumerate(given)} for name, given in values.items()}


def comparison(**values) -> Comparison:
    return Comparison(0.25, runs=reached(**values))


def number_of_runs(found: Comparison) -> dict[str, int]:
    return {name: len(runs) for name, runs in found.runs.items()}


def test_all_methods_run_on_the_same_splits_one_split_after_the_other() -> None:
    order = []
    result = compare(DATA, TWO, runs=5, seed=7, device="cpu", on_run=lambda name, run: order.append((run, name)))
    assert order == [(run, name) for run in range(5) for name in ("mlp", "gcn")]
    for name, method in TWO.items():
        prepared = prepare(method, DATA, seed=7, device=torch.device("cpu"))
        for run in range(5):
            masks = split_masks(DATA, run % 4)
            fitted = fit(prepared, train_mask=masks["train"], val_mask=masks["val"], seed=7 + run)
            found = result.runs[name][run]
            assert found.scores == fitted.measure(masks["test"]), "the fifth is on the first split, with another seed"
            assert (found.epochs, found.options) == (method.training.epochs, method.options())
    sizes = [int(mask[:, 0].sum()) for mask in (DATA.test_mask, DATA.train_mask)]
    assert result.test_share == pytest.approx(sizes[0] / sizes[1])


def test_ranking_and_differences() -> None:
    result = comparison(a=[0.70, 0.72, 0.71], b=[0.80, 0.84, 0.85], c=[0.80, 0.80, 0.80])
    assert result.ranking == ["b", "c", "a"]
    assert result.mean("a") == pytest.approx(0.71)
    assert result.std("a") == pytest.approx(0.01)
    assert [*result.differences] == [("b", "c"), ("b", "a"), ("c", "a")]
    assert ([*result.leads], result.winner) == (["c", "a"], "b")
    assert comparison(majority=[0.8], mlp=[0.7]).winner == "mlp"
    assert Comparison(0.25).winner is None
    assert result.leads["a"].mean == pytest.approx(0.12)
    pairs = [[0.0, 0.04, 0.05], [0.10, 0.12, 0.14], [0.10, 0.08, 0.09]]
    corrected = [found.p for found in paired_differences(pairs, 0.25)]
    assert [found.p for found in result.differences.values()] == pytest.approx(corrected)
    assert result.leads["a"].p > paired_difference(pairs[1], 0.25).p


class Broken(FakeConfig):
    """A method whose inputs can't be made."""

    error: ClassVar[Exception] = InputError("too many pairs; use another method")

    def inputs(self, graph, precomputed, *, seed):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (InputError("too many pairs; use another method"), InputError, "too many pairs; use another method"),
        (TrainingDiverged("training diverged"), TrainingDiverged, "training diverged"),
        (RuntimeError("not\nenough memory"), GcnslError, "RuntimeError: not enough memory"),
    ],
)
def test_a_method_that_fails_for_any_reason_is_left_out(monkeypatch, error, kind, why) -> None:
    monkeypatch.setattr(Broken, "error", error)
    broken = {"gat": replace(fake("gat"), config=Broken())}
    for executor in (HERE, FakeExecutor(slots=2)):
        result = compare(DATA, {**broken, **TWO}, runs=2, device="cpu", executor=executor)
        assert result.failures == {"gat": f"run 0: {why}"}
        assert number_of_runs(result) == {"majority": 2, "mlp": 2, "gcn": 2}
    with pytest.raises(GcnslError, match=f"gat, run 0: {why}") as raised:
        compare(DATA, broken, runs=2, device="cpu")
    assert type(raised.value) is kind


def test_more_seeds_on_the_same_splits_are_no_further_evidence() -> None:
    runs = reached(a=[0.9, 0.7, 0.8, 0.6], b=[0.8, 0.5, 0.5, 0.6])
    by_split = Comparison(0.25, splits=2, runs=runs).leads["b"]
    expected = paired_difference([(0.1 + 0.3) / 2, (0.2 + 0.0) / 2], 0.25)
    assert (by_split.mean, by_split.p) == pytest.approx((expected.mean, expected.p))
    close = reached(a=[0.8, 0.85, 0.9] * 2, b=[0.78, 0.83, 0.84] * 2)
    assert "so few splits; about " in Comparison(0.01, splits=3, runs=close).verdict()
    by_seed = Comparison(0.0, splits=1, runs=runs).leads["b"]
    assert by_seed.p == pytest.approx(paired_difference([0.1, 0.2, 0.3, 0.0], 0.0).p)


def test_on_one_split_only_seeds_differ_and_nothing_is_corrected_for() -> None:
    one = copy.copy(DATA)
    one.update({name: DATA[name][:, :1] for name in MASKS})
    result = compare(one, TWO, runs=3, device="cpu")
    assert result.test_share == 0
    assert result.to_dict()["one_split"]
    assert len(set(result.values("gcn", "log-loss"))) == 3
    assert len(set(result.values("majority", "log-loss"))) == 1


def test_any_metric_ranks_in_its_own_direction() -> None:
    by_loss = Comparison(0.25, "log-loss", runs=reached("log-loss", a=[0.5, 0.7], b=[0.4, 0.3]))
    assert by_loss.ranking == ["b", "a"]
    assert by_loss.leads["a"].mean == pytest.approx(0.25), "a lead is positive"
    assert comparison(a=[math.nan], b=[0.1]).ranking == ["b", "a"]
    with pytest.raises(InputError, match=r"metric\('auc'\) must be one of accuracy"):
        compare(DATA, TWO, metric="auc")


@pytest.mark.parametrize("seed", range(2))
def test_an_executor_reaches_the_same_in_whatever_order_runs_are_finished(seed) -> None:
    here, told = compare(DATA, TWO, runs=5, seed=7, device="cpu"), []
    executor = FakeExecutor(slots=4, seed=seed)
    there = compare(DATA, TWO, runs=5, seed=7, device="cpu", executor=executor, on_run=lambda *turn: told.append(turn))
    for name in here.runs:
        for metric in METRICS:
            assert there.values(name, metric) == here.values(name, metric)
    assert sorted(told) == [(name, run) for name in ("gcn", "mlp") for run in range(5)]
    assert told != [(name, run) for run in range(5) for name in TWO]
    assert executor.calls_sent == 1, "the graph is not sent with every run"


def test_a_method_that_fails_elsewhere_is_left_out_and_has_no_further_runs() -> None:
    methods = {"gat": fake("gat", fails=True), **TWO}
    told = []
    executor = FakeExecutor(slots=2, lost={("gcn", 1)})
    result = compare(DATA, methods, runs=4, device="cpu", executor=executor, on_run=lambda *turn: told.append(turn))
    assert result.failures["gcn"] == "run 1: killed"
    assert result.failures["gat"].endswith("training diverged: as it was told to")
    assert number_of_runs(result) == {"majority": 4, "mlp": 4}
    assert len([turn for turn in told if turn[0] == "gat"]) < 4


def test_ctrl_c_brings_what_is_finished_elsewhere_in_order() -> None:
    told = []

    def press(name, run) -> None:
        told.append((name, run))
        if len(told) == 6:
            raise KeyboardInterrupt

    with pytest.raises(ComparisonInterrupted, match=r"interrupted after \d of 10 runs") as stop:
        compare(DATA, TWO, runs=5, device="cpu", executor=FakeExecutor(slots=4), on_run=press)
    whole = compare(DATA, TWO, runs=5, device="cpu")
    for name, runs in stop.value.finished.runs.items():
        assert sorted(runs) == list(range(len(runs))), "all methods have some in common"
        assert stop.value.finished.values(name) == whole.values(name)[: len(runs)]


A = [0.80, 0.82, 0.81, 0.80]


def verdict(test_share=0.4, **accuracy) -> str:
    return Comparison(test_share, runs=reached(**accuracy)).verdict()


@pytest.mark.parametrize(
    ("others", "sentences"),
    [
        ({}, "a has nothing to be compared with."),
        ({"b": A, "c": [0.801, 0.818, 0.81, 0.80]}, "a leads. b and c are within a point of it."),
        (
            {"b": [0.60, 0.61, 0.62, 0.60], "d": [0.50, 0.53, 0.49, 0.50], "e": [0.4, 0.4, 0.4, 0.4]},
            "a leads; its lead over b (p < .001), d (p < .001) and e (p < .001) is more than noise.",
        ),
        (
            {"b": [0.60, 0.61, 0.62, 0.60], "c": [0.83, 0.76, 0.85, 0.75]},
            "a leads; its lead over b (p < .001) is more than noise. c (p = .83) is not distinguishable from it, and "
            "no number of runs on such splits would settle it.",
        ),
    ],
)
def test_what_can_be_said_and_what_can_not(others, sentences) -> None:
    assert verdict(a=A, **others) == sentences


def test_a_metric_that_is_not_defined_everywhere_is_named() -> None:
    found = comparison(a=A, b=[0.8, math.nan, 0.7, 0.7])
    assert found.verdict().startswith("The metric is not defined on some splits")
    assert math.isnan(found.std("b"))
