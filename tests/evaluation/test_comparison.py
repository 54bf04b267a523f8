import math
import os
import signal

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import Interrupted, TrainingDiverged
from gcnsl.evaluation import paired_difference, run_split
from gcnsl.evaluation.comparison import Comparison, ComparisonInterrupted, compare
from gcnsl.methods import prepare

from .fake_methods import fake

DATA = with_random_split(synthetic(n=90, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=4)
TWO = {"mlp": fake("mlp"), "gcn": fake("gcn").with_options(epochs=6, lr=0.5)}


def comparison(**accuracy) -> Comparison:
    return Comparison(0.25, accuracy=accuracy)


def test_all_methods_run_on_the_same_splits_one_split_after_the_other() -> None:
    order = []
    result = compare(DATA, TWO, runs=3, seed=7, device="cpu", on_run=lambda name, run: order.append((run, name)))
    assert order == [(run, name) for run in range(3) for name in ("mlp", "gcn")]
    for name, method in TWO.items():
        prepared = prepare(method, DATA, seed=7, device=torch.device("cpu"))
        outcomes = [run_split(prepared, run=run, seed=7 + run) for run in range(3)]
        assert result.accuracy[name] == [outcome.accuracy["test"] for outcome in outcomes]
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
    lead = result.against_best("a")
    assert lead.mean == pytest.approx(0.12)
    assert lead.p == pytest.approx(paired_difference([0.10, 0.12, 0.14], 0.25).p)
    assert result.against_best("b") is None


def test_one_split_says_nothing_about_noise() -> None:
    result = comparison(a=[0.7], b=[0.8])
    assert math.isnan(result.std("a"))
    assert math.isnan(result.against_best("a").p)


def test_methods_with_fewer_runs_are_compared_on_those() -> None:
    lead = comparison(a=[0.7, 0.7], b=[0.8, 0.9, 0.1]).against_best("b")
    assert (lead.better, lead.worse) == ("a", "b")
    assert lead.mean == pytest.approx(-0.15)


def test_ctrl_c_brings_what_is_finished() -> None:
    def press(name, run) -> None:
        if (name, run) == ("gcn", 1):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(ComparisonInterrupted, match="interrupted after 3 of 6 runs") as stop:
        compare(DATA, TWO, runs=3, device="cpu", on_run=press)
    assert isinstance(stop.value, Interrupted)
    finished = stop.value.finished
    assert {name: len(values) for name, values in finished.accuracy.items()} == {"mlp": 2, "gcn": 1}
    assert finished.accuracy["mlp"] == compare(DATA, TWO, runs=2, device="cpu").accuracy["mlp"]


def test_ctrl_c_in_the_midst_of_training_counts_too() -> None:
    with pytest.raises(ComparisonInterrupted, match="after 0 of 2 runs"):
        compare(DATA, TWO, runs=1, device="cpu", on_epoch=lambda _: os.kill(os.getpid(), signal.SIGINT))


def test_a_method_that_diverges_is_left_out() -> None:
    failing = {"gat": fake("gat", fails=True)}
    begun = []
    result = compare(DATA, {**failing, **TWO}, runs=2, device="cpu", on_run=lambda *run: begun.append(run))
    assert result.failures == {"gat": "run 0: training diverged: as it was told to"}
    assert [run for run in begun if run[0] == "gat"] == [("gat", 0)]
    assert {name: len(values) for name, values in result.accuracy.items()} == {"mlp": 2, "gcn": 2}
    with pytest.raises(TrainingDiverged, match="gat, run 0: training diverged"):
        compare(DATA, failing, runs=2, device="cpu")


def test_a_method_that_diverges_late_leaves_no_runs_behind() -> None:
    result = compare(DATA, TWO, runs=1, device="cpu")
    result.leave_out("gcn", "run 1: too late")
    assert result.ranking == ["mlp"]
    assert set(result.seconds) == set(result.epochs) == set(result.options) == {"mlp"}


@pytest.mark.parametrize("runs", [0, 5])
def test_there_must_be_so_many_splits(runs) -> None:
    with pytest.raises(InputError, match=rf"runs\({runs}\) must be from 1 to 4: the graph has 4 split"):
        compare(DATA, TWO, runs=runs)


A = [0.80, 0.82, 0.81, 0.80]


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        ({}, "a has nothing to be compared with."),
        (
            {"b": [0.60, 0.61, 0.62, 0.60], "c": [0.83, 0.76, 0.85, 0.75]},
            "a leads; its lead over b (p < .001) is more than noise, over c (p = .83) it may be noise.",
        ),
        ({"b": [0.60, 0.61, 0.62, 0.60]}, "a leads; its lead over b (p < .001) is more than noise."),
        ({"b": A}, "a leads, but its lead over b (p = 1) may be noise."),
        (
            {"b": [0.60, 0.61, 0.62, 0.60], "d": [0.50, 0.53, 0.49, 0.50], "e": [0.4, 0.4, 0.4, 0.4]},
            "a leads; its lead over b (p < .001), d (p < .001) and e (p < .001) is more than noise.",
        ),
    ],
)
def test_the_verdict_in_plain_words(others, sentence) -> None:
    assert Comparison(0.4, accuracy={"a": A, **others}).verdict() == sentence


def test_the_verdict_on_one_run() -> None:
    assert (
        Comparison(0.4, accuracy={"a": [0.8], "b": [0.7]}).verdict().startswith("a leads, but a single run can't tell")
    )
    assert math.isnan(Comparison(0.4, accuracy={"a": [0.8], "b": [0.7]}).against_best("b").p)
