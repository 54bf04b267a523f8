import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.evaluation.intervals import Z, judge_calibration, metric_intervals, wilson
from gcnsl.training.metrics import METRICS, measure


def drawn(draw, nodes, shares, signal=1.2):
    """Classes and their true probabilities, up to a prior."""
    classes = len(shares)
    y = draw.choice(classes, size=nodes, p=shares)
    logits = signal * (draw.normal(size=(nodes, classes)) + signal * np.eye(classes)[y]) + np.log(shares)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True), y


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_shares_that_a_test_would_not_reject(case) -> None:
    hits, nodes = case
    low, high = wilson(hits, nodes)
    assert 0 <= low <= hits / nodes <= high <= 1
    for bound in {low, high} - {0.0, 1.0}:
        assert abs(hits / nodes - bound) == pytest.approx(Z * math.sqrt(bound * (1 - bound) / nodes))
    assert wilson(0, 0) is None


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.5, 0.3, 0.2), (0.7, *[0.3 / 60] * 60)])  # 60 with a node or two
def test_errors_are_those_of_a_plain_bootstrap(shares) -> None:
    draw = np.random.default_rng(0)
    p, y = drawn(draw, 250, shares)
    predicted, values = p.argmax(axis=1), measure(p, y)
    found = metric_intervals(values, p, y, predicted)
    again = [draw.integers(0, 250, 250) for _ in range(400)]
    for name in ("balanced-accuracy", "macro-f1", "roc-auc", "average-precision", "log-loss"):
        low, high = found[name]
        if name != "log-loss":
            low, high, value = (math.log(v / (1 - v)) for v in (low, high, values[name]))
            assert value == pytest.approx((low + high) / 2)
        spread = np.array([METRICS[name](p[rows], y[rows]) for rows in again])
        if name != "log-loss":
            spread = spread / (values[name] * (1 - values[name]))
        assert high - low == pytest.approx(2 * Z * spread.std(), rel=0.25), name


def test_intervals_hold_what_more_nodes_would_tell() -> None:
    draw, shares, hits = np.random.default_rng(1), (0.85, 0.15), []
    truth = measure(*drawn(draw, 200_000, shares))
    for _ in range(200):
        p, y = drawn(draw, 200, shares)
        found = metric_intervals(measure(p, y), p, y, p.argmax(axis=1))
        hits.append([low <= truth[name] <= high for name, (low, high) in sorted(found.items())])
    assert np.mean(hits, axis=0).min() > 0.88
    p, y = drawn(draw, 20_000, shares)  # more than are looked at
    low, high = metric_intervals(measure(p, y), p, y, p.argmax(axis=1))["roc-auc"]
    assert low < truth["roc-auc"] < high < low + 0.05


@pytest.mark.parametrize("y", [[0], [0, 0, 0], [0, 1, 2, 2]])
def test_few_nodes_and_perfect_predictions(y) -> None:
    y = np.array(y)
    p = np.eye(3)[y] * 0.94 + 0.02
    found = metric_intervals(measure(p, y), p, y, y)
    assert all(low < high for low, high in found.values())
    assert found["accuracy"][1] == 1
    assert metric_intervals({}, p[:0], y[:0], y[:0]) == {}
    assert judge_calibration(p[:0], y[:0]) is None


def test_true_probabilities_are_believed_and_others_are_not() -> None:
    draw = np.random.default_rng(2)
    believed = {nodes: [] for nodes in (40, 800)}
    for nodes, verdicts in believed.items():
        for _ in range(60):
            p = draw.dirichlet([1, 1, 1], size=nodes)
            y = np.array([draw.choice(3, p=row) for row in p])
            verdicts.append((verdict := judge_calibration(p, y)).believable)
            assert verdict.words.startswith("40 nodes are too few") == (nodes == 40 and verdict.believable)
            sharp, flat = (p**power / (p**power).sum(axis=1, keepdims=True) for power in (2.5, 0.3))
            if nodes == 800:
                for other, words in ((sharp, "too sure"), (flat, "too modest")):
                    found = judge_calibration(other, y)
                    assert not found.believable
                    assert words in found.words
                    assert found.remedy
    assert all(np.mean(verdicts) > 0.85 for verdicts in believed.values())
