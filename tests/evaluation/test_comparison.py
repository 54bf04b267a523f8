import copy
import json
import math
import os
import signal
from dataclasses import replace
from typing import ClassVar

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import GcnslError, Interrupted, TrainingDiverged
from gcnsl.evaluation import paired_difference
from gcnsl.evaluation.comparison import (
    Comparison,
    ComparisonInterrupted,
    Difference,
    compare,
    measure_majority,
    p_text,
    verdict_on,
)
from gcnsl.evaluation.statistics import paired_differences
from gcnsl.graph import split_masks
from gcnsl.graph.masks import MASKS
from gcnsl.methods import Fitted, fit, prepare
from gcnsl.runs.executor import HERE, ThisProcess
from gcnsl.training import METRICS

from ..runs.fake_executor import FakeExecutor
from .fake_methods import FakeConfig, fake

DATA = with_random_split(synthetic(n=90, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=4)
TWO = {"mlp": fake("mlp"), "gcn": fake("gcn").with_options(epochs=6, lr=0.5)}


def fit_split(prepared, run, seed) -> Fitted:
    masks = split_masks(DATA, run)
    return fit(prepared, train_mask=masks["train"], val_mask=masks["val"], seed=seed)


def comparison(**accuracy) -> Comparison:
    return Comparison(0.25, scores={name: {"accuracy": values} for name, values in accuracy.items()})


def test_all_methods_run_on_the_same_splits_one_split_after_the_other() -> None:
    order = []
    result = compare(DATA, TWO, runs=3, seed=7, device="cpu", on_run=lambda name, run: order.append((run, name)))
    assert order == [(run, name) for run in range(3) for name in ("mlp", "gcn")]
    for name, method in TWO.items():
        prepared = prepare(method, DATA, seed=7, device=torch.device("cpu"))
        fits = [fit_split(prepared, run, 7 + run) for run in range(3)]
        tests = [split_masks(DATA, run)["test"] for run in range(3)]
        measured = [fitted.measure(test) for fitted, test in zip(fits, tests, strict=True)]
        for metric in ("accuracy", "roc-auc"):
            assert result.scores[name][metric] == [values[metric] for values in measured]
        assert result.epochs[name] == [method.training.epochs] * 3
        assert result.seconds[name] > 0
        assert result.options[name] == method.options()
    sizes = [int(mask[:, 0].sum()) for mask in (DATA.test_mask, DATA.train_mask)]
    assert result.test_share == pytest.approx(sizes[0] / sizes[1])


def test_ranking_and_differences() -> None:
    result = comparison(a=[0.70, 0.72, 0.71], b=[0.80, 0.84, 0.85], c=[0.80, 0.80, 0.80])
    assert result.ranking == ["b", "c", "a"]
    assert result.mean("a") == pytest.approx(0.71)
    assert result.std("a") == pytest.approx(0.01)
    assert [(d.better, d.worse) for d in result.differences] == [("b", "c"), ("b", "a"), ("c", "a")]
    assert [*result.leads] == ["c", "a"]
    assert result.leads["a"].mean == pytest.approx(0.12)
    pairs = [[0.0, 0.04, 0.05], [0.10, 0.12, 0.14], [0.10, 0.08, 0.09]]
    corrected = [found.p for found in paired_differences(pairs, 0.25)]
    assert [d.p for d in result.differences] == pytest.approx(corrected)
    assert result.leads["a"].p > paired_difference(pairs[1], 0.25).p


def test_one_split_says_nothing_about_noise() -> None:
    result = comparison(a=[0.7], b=[0.8])
    assert math.isnan(result.std("a"))
    assert math.isnan(result.leads["a"].p)


def test_methods_with_fewer_runs_are_compared_on_those() -> None:
    lead = comparison(a=[0.7, 0.7], b=[0.8, 0.9, 0.1]).leads["b"]
    assert (lead.better, lead.worse) == ("a", "b")
    assert lead.mean == pytest.approx(-0.15)


def test_ctrl_c_brings_what_is_finished() -> None:
    def press(name, run) -> None:
        if (name, run) == ("gcn", 1):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(ComparisonInterrupted, match="interrupted after 4 of 6 runs") as stop:
        compare(DATA, TWO, runs=3, device="cpu", on_run=press)
    assert isinstance(stop.value, Interrupted)
    finished = stop.value.finished
    assert {name: len(finished.values(name)) for name in finished.scores} == {"majority": 2, "mlp": 2, "gcn": 2}
    assert finished.scores["mlp"] == compare(DATA, TWO, runs=2, device="cpu").scores["mlp"]


def test_ctrl_c_in_the_midst_of_training_counts_too() -> None:
    with pytest.raises(ComparisonInterrupted, match="after 0 of 2 runs"):
        compare(DATA, TWO, runs=1, device="cpu", executor=ThisProcess(lambda *_: os.kill(os.getpid(), signal.SIGINT)))


def test_a_method_that_diverges_is_left_out() -> None:
    failing = {"gat": fake("gat", fails=True)}
    begun = []
    result = compare(DATA, {**failing, **TWO}, runs=2, device="cpu", on_run=lambda *run: begun.append(run))
    assert result.failures == {"gat": "run 0: training diverged: as it was told to"}
    assert [run for run in begun if run[0] == "gat"] == [("gat", 0)]
    assert {name: len(result.values(name)) for name in result.scores} == {"majority": 2, "mlp": 2, "gcn": 2}
    with pytest.raises(TrainingDiverged, match="gat, run 0: training diverged"):
        compare(DATA, failing, runs=2, device="cpu")


class Broken(FakeConfig):
    """A method whose inputs can't be made."""

    error: ClassVar[Exception] = InputError("too many pairs; use another method")

    def inputs(self, graph, precomputed, *, seed):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (InputError("too many pairs; use another method"), InputError, "too many pairs; use another method"),
        (RuntimeError("not\nenough memory"), GcnslError, "RuntimeError: not enough memory"),
        (MemoryError(), GcnslError, "MemoryError"),
    ],
)
def test_a_method_that_fails_for_any_reason_is_left_out(monkeypatch, error, kind, why) -> None:
    monkeypatch.setattr(Broken, "error", error)
    broken = {"gat": replace(fake("gat"), config=Broken())}
    for executor in (HERE, FakeExecutor(slots=2)):
        result = compare(DATA, {**broken, **TWO}, runs=2, device="cpu", executor=executor)
        assert result.failures == {"gat": f"run 0: {why}"}
        assert {name: len(result.values(name)) for name in result.scores} == {"majority": 2, "mlp": 2, "gcn": 2}
    with pytest.raises(GcnslError, match=f"gat, run 0: {why}") as raised:
        compare(DATA, broken, runs=2, device="cpu")
    assert type(raised.value) is kind


def test_with_fewer_splits_than_runs_they_are_used_again_with_other_seeds() -> None:
    result = compare(DATA, TWO, runs=5, seed=7, device="cpu")
    prepared = prepare(TWO["gcn"], DATA, seed=7, device=torch.device("cpu"))
    last = fit_split(prepared, 0, 11).measure(split_masks(DATA, 0)["test"])
    assert result.scores["gcn"]["log-loss"][4] == last["log-loss"]
    assert result.test_share > 0


def test_more_seeds_on_the_same_splits_are_no_further_evidence() -> None:
    scores = {"a": {"accuracy": [0.9, 0.7, 0.8, 0.6]}, "b": {"accuracy": [0.8, 0.5, 0.5, 0.6]}}
    by_split = Comparison(0.25, splits=2, scores=scores).leads["b"]
    expected = paired_difference([(0.1 + 0.3) / 2, (0.2 + 0.0) / 2], 0.25)
    assert (by_split.mean, by_split.p) == pytest.approx((expected.mean, expected.p))
    by_seed = Comparison(0.0, splits=1, scores=scores).leads["b"]
    assert by_seed.p == pytest.approx(paired_difference([0.1, 0.2, 0.3, 0.0], 0.0).p)


def test_on_one_split_only_seeds_differ_and_nothing_is_corrected_for() -> None:
    one = copy.copy(DATA)
    one.update({name: DATA[name][:, :1] for name in MASKS})
    result = compare(one, TWO, runs=3, device="cpu")
    assert result.test_share == 0
    assert result.to_dict()["one_split"]
    assert len(set(result.scores["gcn"]["log-loss"])) == 3
    assert len(set(result.scores["majority"]["log-loss"])) == 1


def test_any_metric_ranks_in_its_own_direction() -> None:
    scores = {
        "a": {"accuracy": [0.9, 0.8], "log-loss": [0.5, 0.7]},
        "b": {"accuracy": [0.6, 0.7], "log-loss": [0.4, 0.3]},
    }
    assert Comparison(0.25, scores=scores).ranking == ["a", "b"]
    by_loss = Comparison(0.25, "log-loss", scores=scores)
    assert by_loss.ranking == ["b", "a"]
    assert by_loss.leads["a"].mean == pytest.approx(0.25), "a lead is positive"
    undefined = Comparison(0.25, scores={"a": {"accuracy": [math.nan]}, "b": {"accuracy": [0.1]}})
    assert undefined.ranking == ["b", "a"]
    with pytest.raises(InputError, match=r"metric\('auc'\) must be one of accuracy"):
        compare(DATA, TWO, metric="auc")


def test_a_baseline_that_leads_is_no_winner() -> None:
    result = Comparison(0.25, scores={"majority": {"accuracy": [0.8]}, "mlp": {"accuracy": [0.7]}}, epochs={"mlp": [3]})
    assert (result.ranking[0], result.winner) == ("majority", "mlp")
    assert Comparison(0.25).winner is None


def test_as_plain_values() -> None:
    told = compare(DATA, TWO, runs=2, metric="macro-f1", device="cpu").to_dict()
    assert json.loads(json.dumps(told)).keys() == told.keys()
    assert {method["name"] for method in told["methods"]} == {"majority", "mlp", "gcn"}
    for method in told["methods"]:
        assert method["mean"] == pytest.approx(sum(method["metrics"]["macro-f1"]) / 2)
        assert method["metrics"].keys() == METRICS.keys()
    assert len(told["differences"]) == 3
    assert {"half_width", "p", "verdict", "runs_needed"} <= told["differences"][0].keys()


@pytest.mark.parametrize("seed", range(3))
def test_an_executor_reaches_the_same_in_whatever_order_runs_are_finished(seed) -> None:
    here, told = compare(DATA, TWO, runs=5, seed=7, device="cpu"), []
    executor = FakeExecutor(slots=4, seed=seed)
    there = compare(DATA, TWO, runs=5, seed=7, device="cpu", executor=executor, on_run=lambda *turn: told.append(turn))
    assert there.scores == here.scores
    assert (there.epochs, there.options) == (here.epochs, here.options)
    assert sorted(told) == [(name, run) for name in ("gcn", "mlp") for run in range(5)]
    assert told != [(name, run) for run in range(5) for name in TWO]
    assert executor.calls_sent == 1, "the graph is not sent with every run"


def test_a_method_that_fails_elsewhere_is_left_out_and_has_no_further_runs() -> None:
    methods = {"gat": fake("gat", fails=True), **TWO}
    told = []
    executor = FakeExecutor(slots=2, lost={("gcn", 1)})
    result = compare(DATA, methods, runs=4, device="cpu", executor=executor, on_run=lambda *turn: told.append(turn))
    assert result.failures == {"gat": "run 0: training diverged: as it was told to", "gcn": "run 1: killed"}
    assert {name: len(result.values(name)) for name in result.scores} == {"majority": 4, "mlp": 4}
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
    for name, scores in stop.value.finished.scores.items():
        for metric, values in scores.items():
            assert values == whole.scores[name][metric][: len(values)]


def test_it_guesses_what_is_most_frequent_in_training() -> None:
    y = torch.tensor([0, 1, 1, 1, 2, 0, 0, 0, 1, -1])
    train = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=torch.bool)
    test = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 0], dtype=torch.bool)
    found = measure_majority(y, 3, {"train": train, "test": test})
    assert found["accuracy"] == 1 / 4
    assert found["roc-auc"] == 1 / 2
    assert found["balanced-accuracy"] == 1 / 2
    assert found["calibration-error"] == pytest.approx(1 / 2)


A = [0.80, 0.82, 0.81, 0.80]


def verdict(test_share=0.4, **accuracy) -> str:
    return Comparison(test_share, scores={name: {"accuracy": values} for name, values in accuracy.items()}).verdict()


@pytest.mark.parametrize(
    ("others", "sentences"),
    [
        ({}, "a has nothing to be compared with."),
        ({"b": [0.60, 0.61, 0.62, 0.60]}, "a leads; its lead over b (p < .001) is more than noise."),
        ({"b": A}, "a leads. b is within a point of it."),
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


def lead(worse, needed) -> Difference:
    return Difference("a", worse, 0.02, 0.03, 0.2, "undecided", needed)


@pytest.mark.parametrize(
    ("leads", "sentence"),
    [
        (
            [lead("b", 12)],
            "a leads. b (p = .20) is not distinguishable from it with so few runs; about 12 would settle it.",
        ),
        (
            [lead("b", 12), lead("c", 1400)],
            "a leads. b (p = .20) and c (p = .20) are not distinguishable from it with so few runs; about 12 and 1,400 "
            "would settle it.",
        ),
        (
            [lead("b", 12), lead("c", None)],
            "a leads. b (p = .20) is not distinguishable from it with so few runs; about 12 would settle it. "
            "c (p = .20) is not distinguishable from it, and no number of runs on such splits would settle it.",
        ),
    ],
)
def test_how_many_runs_would_settle_it(leads, sentence) -> None:
    assert verdict_on("a", leads) == sentence


def test_where_splits_have_several_runs_there_are_too_few_splits() -> None:
    scores = {"a": {"accuracy": [0.8, 0.85, 0.9] * 2}, "b": {"accuracy": [0.78, 0.83, 0.84] * 2}}
    assert "so few splits; about " in Comparison(0.01, splits=3, scores=scores).verdict()
    assert "so few splits" not in Comparison(0.01, splits=6, scores=scores).verdict()


def test_with_one_split_more_seeds_always_settle_it() -> None:
    noisy = [0.83, 0.76, 0.85, 0.75]
    assert "no number of runs" in verdict(0.4, a=A, c=noisy)
    assert "would settle it" in verdict(0.0, a=A, c=noisy)


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "–"), (0.0001, "< .001"), (0.004, ".004"), (0.03, ".03"), (0.999, "1")]
)
def test_p_values_as_statisticians_write_them(value, text) -> None:
    assert p_text(value) == text
    assert p_text(0.03, equals=True) == "= .03"


def test_a_metric_that_is_not_defined_everywhere_is_named() -> None:
    comparison = Comparison(0.4, scores={"a": {"accuracy": A}, "b": {"accuracy": [0.8, math.nan, 0.7, 0.7]}})
    assert comparison.verdict().startswith("The metric is not defined on some splits")
    assert math.isnan(comparison.std("b"))
