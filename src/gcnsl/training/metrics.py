"""How good predictions are, by several metrics. Training, comparisons and searches all choose by one of them.

A metric is a function of the probabilities (n × C) and the class numbers (n) of labelled nodes. It is NaN where it is
not defined, as ROC-AUC is on nodes that are all of one class.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
MetricName = Literal[
    "accuracy", "balanced-accuracy", "macro-f1", "roc-auc", "average-precision", "log-loss", "calibration-error"
]
COUNTING = ("accuracy", "balanced-accuracy", "macro-f1")
"""Metrics that count decisions; the others look at the probabilities."""
BINS = 15
RARE, FREQUENT = 1 / 5, 3 / 5
"""Accuracy says little if the rarer of two classes has at most so many of the nodes, or the largest of several so many.
"""


@dataclass(frozen=True)
class Metric:
    """A metric: its function, what it means, whether more is better, and whether it is a share, shown in percent."""

    function: Callable[[Floats, Ints], float]
    meaning: str
    greater_is_better: bool = True
    is_share: bool = True

    def __call__(self, probabilities: Floats, y: Ints) -> float:
        """The value on nodes with these probabilities (n × C) and class numbers (n)."""
        usable = len(y) > 0 and bool(np.isfinite(probabilities).all())
        return float(self.function(probabilities, y)) if usable else math.nan

    def gain(self, value: float) -> float:
        """The value with the sign that makes more better."""
        return value if self.greater_is_better else -value

    def text(self, value: float | None, *, percent_sign: bool = True) -> str:
        """The value as a reader wants to see it; a dash where it is not defined."""
        if value is None or math.isnan(value):
            return "–"
        return f"{100 * value:.1f}{'%' if percent_sign else ''}" if self.is_share else f"{value:.3f}"


def most_probable(probabilities: Floats) -> Ints:
    """The predicted class of each node (n × C → n), wherever one is shown or counted: of equal ones the first."""
    predicted: Ints = probabilities.argmax(axis=-1)
    return predicted


class CalibrationBins(NamedTuple):
    """Nodes by the probability of their predicted class, in equal steps from 0 to 1 (15 values each)."""

    nodes: Ints
    confidence: Floats
    """Mean probability of the predicted class; NaN in an empty bin, like the accuracy."""
    accuracy: Floats


def calibration_bins(probabilities: Floats, y: Ints) -> CalibrationBins:
    """Compare the probability of the predicted class with how often it is right."""
    confidence, right = probabilities.max(axis=1), most_probable(probabilities) == y
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    nodes, sums, hits = (np.bincount(bins, weights=weights, minlength=BINS) for weights in (None, confidence, right))
    count = np.where(nodes > 0, nodes, np.nan)
    return CalibrationBins(nodes, sums / count, hits / count)


def _sklearn(name: str) -> Callable[..., float]:
    """One of scikit-learn's metrics, loaded when it is needed."""
    from sklearn import metrics

    metric: Callable[..., float] = getattr(metrics, name)
    return metric


def _accuracy(probabilities: Floats, y: Ints) -> float:
    return float((most_probable(probabilities) == y).mean())


def _balanced_accuracy(probabilities: Floats, y: Ints) -> float:
    predicted = most_probable(probabilities)
    return float(_sklearn("recall_score")(y, predicted, labels=np.unique(y), average="macro", zero_division=0))


def _macro_f1(probabilities: Floats, y: Ints) -> float:
    return float(_sklearn("f1_score")(y, most_probable(probabilities), average="macro", zero_division=0))


def _one_against_rest(score: str) -> Callable[[Floats, Ints], float]:
    """The mean of one of scikit-learn's scores over the classes that occur, each against all others.

    With two classes, it is that of the rarer one.
    """

    def mean_over_classes(probabilities: Floats, y: Ints) -> float:
        classes, counts = np.unique(y, return_counts=True)
        if len(classes) < 2:
            return math.nan
        if probabilities.shape[1] == 2:
            classes = classes[[0 if counts[0] < counts[1] else 1]]
        return float(np.mean([_sklearn(score)(y == c, probabilities[:, c]) for c in classes]))

    return mean_over_classes


def _log_loss(probabilities: Floats, y: Ints) -> float:
    exact = probabilities.astype(np.float64)  # rounded to float32, rows do not sum to 1 closely enough
    return float(_sklearn("log_loss")(y, exact / exact.sum(axis=1, keepdims=True), labels=np.arange(exact.shape[1])))


def _calibration_error(probabilities: Floats, y: Ints) -> float:
    bins = calibration_bins(probabilities, y)
    return float(np.nansum(bins.nodes * np.abs(bins.accuracy - bins.confidence)) / len(y))


METRICS: dict[str, Metric] = {
    "accuracy": Metric(_accuracy, "Share of nodes whose class is predicted correctly."),
    "balanced-accuracy": Metric(_balanced_accuracy, "The same for each class, and then their mean: mean recall."),
    "macro-f1": Metric(_macro_f1, "Mean F1 score of the classes."),
    "roc-auc": Metric(
        _one_against_rest("roc_auc_score"),
        "Area under the ROC curve: mean over the classes, each against the rest.",
    ),
    "average-precision": Metric(
        _one_against_rest("average_precision_score"),
        "Area under the curve of precision over recall, likewise; with two classes, that of the rarer one.",
    ),
    "log-loss": Metric(_log_loss, "Mean of -log of the true class's probability.", False, is_share=False),
    "calibration-error": Metric(
        _calibration_error,
        "Expected calibration error: mean distance between the predicted class's probability and how often it is "
        f"right, in {BINS} equal bins. To be read beside others: always guessing the classes' shares has none.",
        greater_is_better=False,
    ),
}


def class_shares(y: Ints, num_classes: int, nodes: int) -> Floats:
    """The shares of the classes in ``y``, as the probabilities of every one of so many nodes (nodes × C)."""
    counts = np.bincount(y, minlength=num_classes)
    return np.tile(counts / counts.sum(), (nodes, 1))


def measure(probabilities: Floats, y: Ints, predicted: Ints | None = None) -> dict[str, float]:
    """All metrics by name, of nodes with these probabilities (n × C) and class numbers (n).

    Those that count decisions count ``predicted`` (n), by default the likeliest classes.
    """
    decided = probabilities if predicted is None else np.eye(probabilities.shape[1])[predicted]
    return {name: metric(decided if name in COUNTING else probabilities, y) for name, metric in METRICS.items()}


class MetricChoice(NamedTuple):
    """The metric that suits a graph's classes, and why.

    Attributes:
        metric: Its name.
        reason: In words; "since" can stand before them.
        rare: The number of the rare class of two, if there is one.
    """

    metric: str
    reason: str
    rare: int | None = None


def choose_metric(y: Any, class_names: Any) -> MetricChoice:
    """The metric for nodes of these classes (n), -1 for unlabelled ones; the names are those of all classes (C).

    All commands follow this one rule:

    - ``average-precision`` of the rarer of two classes, if at most 20 % of the labelled nodes are of it;
    - ``macro-f1``, if there are more classes and one of them has at least 60 % of the labelled nodes;
    - ``accuracy`` otherwise. A rare class among many does not matter: accuracy says enough of all together.
    """
    given = np.asarray(y)
    counts = np.bincount(given[given >= 0], minlength=len(class_names))
    occurring, labelled = np.flatnonzero(counts), int(counts.sum())
    if len(occurring) < 2:
        return MetricChoice("accuracy", "there are not two classes to tell apart")
    rarest, largest = int(occurring[counts[occurring].argmin()]), int(counts.argmax())
    if len(occurring) == 2 and counts[rarest] <= RARE * labelled:
        reason = f"only {100 * counts[rarest] / labelled:.2g}% of the labelled nodes are {str(class_names[rarest])!r}"
        return MetricChoice("average-precision", reason, rarest)
    reason = f"{counts[largest] / labelled:.0%} of the labelled nodes are {str(class_names[largest])!r}"
    if len(occurring) > 2 and counts[largest] >= FREQUENT * labelled:
        return MetricChoice("macro-f1", f"{reason}, one of {len(occurring)} classes")
    return MetricChoice("accuracy", f"no class dominates: {reason}")
