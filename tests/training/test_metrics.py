import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from gcnsl.training.metrics import BINS, METRICS, calibration_bins, choose_metric, measure


@st.composite
def predictions(draw, least_classes=2):
    """Probabilities with many ties, in single precision as models give them, and labels of some of the classes."""
    c, n = draw(st.integers(least_classes, 5)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = rng.integers(0, draw(st.integers(2, 50)), size=(n, c)) + 0.01
    return (raw / raw.sum(axis=1, keepdims=True)).astype(np.float32), rng.integers(0, draw(st.integers(1, c)), size=n)


@given(predictions())
def test_they_are_those_of_scikit_learn_where_it_has_them(case) -> None:
    p, y = case
    found, predicted = measure(p, y), p.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(sklearn_metrics.accuracy_score(y, predicted))
    assert found["macro-f1"] == pytest.approx(sklearn_metrics.f1_score(y, predicted, average="macro", zero_division=0))
    assert found["log-loss"] == pytest.approx(-np.log(p[np.arange(len(y)), y]).mean(), rel=1e-4)
    recalls = [(predicted[y == c] == c).mean() for c in set(y.tolist())]
    assert found["balanced-accuracy"] == pytest.approx(np.mean(recalls))


@given(predictions())
def test_roc_auc_is_the_share_of_pairs_in_the_right_order(case) -> None:
    p, y = case
    areas = []
    for c in set(y.tolist()):
        pairs = [np.sign(a - b) for a, b in product(p[y == c, c], p[y != c, c])]
        areas += [np.mean([(sign + 1) / 2 for sign in pairs])] if pairs else []
    found = METRICS["roc-auc"](p, y)
    if p.shape[1] == 2 and len(areas) == 2:  # ties of the one class can be rounded apart in the other
        assert found == pytest.approx(areas[int((y == 0).sum() >= (y == 1).sum())])
    else:
        assert found == pytest.approx(np.mean(areas)) if areas else math.isnan(found)


def test_average_precision_is_that_of_the_rarer_of_two_classes() -> None:
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])
    score = METRICS["average-precision"]
    for y, rarer in (([0, 1, 1, 1], 0), ([0, 0, 0, 1], 1), ([0, 1, 0, 1], 1)):
        right = np.array(y) == rarer
        assert score(p, np.array(y)) == sklearn_metrics.average_precision_score(right, p[:, rarer])


@given(predictions(least_classes=3))
def test_average_precision_of_several_classes_is_a_mean(case) -> None:
    p, y = case
    each = [sklearn_metrics.average_precision_score(y == c, p[:, c]) for c in set(y.tolist())]
    expected = np.mean(each) if len(each) > 1 else math.nan
    assert METRICS["average-precision"](p, y) == pytest.approx(expected, nan_ok=True)


@given(predictions())
def test_calibration_error_by_hand(case) -> None:
    p, y = case
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    error = 0.0
    for k in range(BINS):
        inside = [i for i in range(len(y)) if min(int(confidence[i] * BINS), BINS - 1) == k]
        error += len(inside) / len(y) * abs(right[inside].mean() - confidence[inside].mean()) if inside else 0
    assert METRICS["calibration-error"](p, y) == pytest.approx(error, abs=1e-5)
    bins = calibration_bins(p, y)
    assert bins.nodes.sum() == len(y)
    assert (np.isnan(bins.accuracy) == (bins.nodes == 0)).all()


@pytest.mark.parametrize("name", METRICS)
def test_what_is_not_defined_is_nan(name) -> None:
    assert math.isnan(METRICS[name](np.empty((0, 3)), np.empty(0, dtype=np.int64)))
    assert math.isnan(METRICS[name](np.array([[np.nan, np.nan]]), np.array([0])))


@given(predictions())
def test_no_predictions_are_better_than_the_truth(case) -> None:
    p, y = case
    for name, best in measure(np.eye(p.shape[1])[y], y).items():
        value = METRICS[name](p, y)
        assert math.isnan(value) or METRICS[name].gain(best) >= METRICS[name].gain(value) - 1e-9


def test_as_a_reader_sees_them() -> None:
    assert METRICS["accuracy"].text(0.8237) == "82.4%"
    assert METRICS["accuracy"].text(0.8237, percent_sign=False) == "82.4"
    assert METRICS["log-loss"].text(0.8237) == "0.824"
    assert METRICS["roc-auc"].text(math.nan) == METRICS["roc-auc"].text(None) == "–"


@pytest.mark.parametrize(
    ("counts", "metric", "rare"),
    [
        ([79, 21], "accuracy", None),
        ([80, 20], "average-precision", 1),
        ([3, 0, 97], "average-precision", 0),
        ([59, 30, 11], "accuracy", None),
        ([5, 80, 15], "macro-f1", None),
        ([60] * 16 + [1], "accuracy", None),  # a rare class among many is no reason
        ([90, 0], "accuracy", None),
        ([], "accuracy", None),
    ],
)
def test_the_metric_that_suits_the_classes(counts, metric, rare) -> None:
    y = np.array([-1, *(c for c, count in enumerate(counts) for _ in range(count)), -1])
    chosen = choose_metric(y, "abcdefghijklmnopqrstuvwxyz"[: len(counts)])
    assert (chosen.metric, chosen.rare) == (metric, rare)
