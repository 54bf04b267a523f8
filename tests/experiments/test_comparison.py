import math
import os
import signal

import numpy as np
import pytest
from fake_methods import FakeConfig, fake_methods

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.errors import Interrupted, TrainingDiverged
from gcnsl.experiments.comparison import Comparison, ComparisonInterrupted, compare, corrected_t_test
from gcnsl.methods import Method, run_split
from gcnsl.training import TrainingSettings

DATA = with_random_split(synthetic(n=90, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=4)
FAKES = fake_methods()
TWO = {"mlp": FAKES["mlp"], "gcn": Method(FakeConfig("gcn"), TrainingSettings(epochs=6, lr=0.5))}


def comparison(**accuracy) -> Comparison:
    return Comparison(0.25, accuracy=accuracy)


def test_corrected_t_test_by_hand() -> None:
    # mean .03, s² = .00025, J = 5: t = .03 / √((1/5 + 1/4) · .00025) = √8, and with 4 degrees of freedom
    # F(t) = 1/2 + 3/8 · t/√(1 + t²/4) · (1 - t²/12 / (1 + t²/4)) = 1/2 + 3/8 · √(8/3) · 7/9
    expected = 2 * (1 / 2 - 3 / 8 * math.sqrt(8 / 3) * 7 / 9)
    differences = [0.02, 0.04, 0.03, 0.01, 0.05]
    assert corrected_t_test(differences, 0.25) == pytest.approx(expected)
    assert corrected_t_test([-d for d in differences], 0.25) == pytest.approx(expected), "two-sided"
    assert corrected_t_test(differences, 0) < 0.02 < expected < 0.05


def test_corrected_t_test_without_spread() -> None:
    assert math.isnan(corrected_t_test([0.1], 0.25))
    assert corrected_t_test([0.0, 0.0, 0.0], 0.25) == 1
    assert corrected_t_test([0.1, 0.1, 0.1], 0.25) == 0


def test_two_equally_good_learners_seldom_differ() -> None:
    """Two threshold classifiers, each with a feature of its own, equally informative: any lead is luck."""
    graphs, n, train, runs = 300, 70, 49, 10
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], n // 2)
    features = y + rng.normal(size=(2, graphs, n))
    differences = np.empty((graphs, runs))
    for run in range(runs):
        order = rng.permuted(np.tile(np.arange(n), (graphs, 1)), axis=1)
        accuracy = []
        for feature in features:
            x, label = np.take_along_axis(feature, order, axis=1), y[order]
            known, truth = label[:, :train], label[:, train:]
            means = [np.mean(x[:, :train], axis=1, where=known == c, keepdims=True) for c in (0, 1)]
            accuracy.append(((x[:, train:] > sum(means) / 2) == truth).mean(axis=1))
        differences[:, run] = accuracy[0] - accuracy[1]
    share = (n - train) / train
    corrected, plain = (np.mean([corrected_t_test(list(d), s) < 0.05 for d in differences]) for s in (share, 0))
    assert corrected < 0.08
    assert plain > 3 * corrected


def test_all_methods_run_on_the_same_splits_one_split_after_the_other() -> None:
    order = []
    result = compare(DATA, TWO, runs=3, seed=7, device="cpu", on_run=lambda name, run: order.append((run, name)))
    assert order == [(run, name) for run in range(3) for name in ("mlp", "gcn")]
    for name, method in TWO.items():
        inputs = method.config.prepare(DATA, seed=7)
        outcomes = [run_split(method, DATA, inputs, run=run, seed=7 + run, device="cpu") for run in range(3)]
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
    assert lead.p == pytest.approx(corrected_t_test([0.10, 0.12, 0.14], 0.25))
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
    failing = {"gat": Method(FakeConfig("gat", fails=True), TrainingSettings(epochs=3))}
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
