r"""How far scores on some nodes may be off: 95 % intervals, and whether probabilities can be believed.

Shares of nodes (accuracy, precision, recall) have Wilson's interval. Other metrics have 1.96 standard errors
by the bootstrap, of their log-odds if they lie between 0 and 1: nodes are drawn with replacement, which is to say that
each node gets a random weight. Ranking metrics sort the nodes once for all draws. Of more than 5,000 nodes so many are
looked at, and the interval is narrowed by the square root of the ratio. The calibration error has none, as it is larger
in every draw; :func:`judge_calibration` compares it with what chance makes of true probabilities.

Intervals say what other nodes of the same kind would give the same model. They say nothing about other splits, on which
another model would be trained (see ``compare``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from gcnsl.training.metrics import BINS, Floats, Ints, calibration_bins, most_probable

Z = 1.959964
"""The quantile of the normal distribution for 95 %."""
DRAWS, MOST_NODES = 200, 5_000
SMALL_ERROR, TELLS_LITTLE = 0.02, 0.1
"""A mean distance of the first between probability and truth is no problem in use, be it certain or not. On nodes where
chance makes the second of true probabilities, it tells little."""
_SEED = 0

Interval = tuple[float, float]


def wilson(hits: float, nodes: float) -> Interval | None:
    r"""Wilson's interval for a share of nodes; ``None`` without nodes.

    .. math:: \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4n^2}}{1 + z^2 / n}
    """
    if not nodes:
        return None
    share, square = hits / nodes, Z**2 / nodes
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / nodes + square / (4 * nodes)) / (1 + square)
    return (0.0 if not hits else max(0.0, middle - half)), (1.0 if hits == nodes else min(1.0, middle + half))


def metric_intervals(values: dict[str, float], probabilities: Floats, y: Ints, predicted: Ints) -> dict[str, Interval]:
    """An interval for each defined metric of ``values``, of nodes with these probabilities (m × C) and classes (m)."""
    nodes = len(y)
    if not nodes:
        return {}
    step = -(-nodes // MOST_NODES)
    narrower = math.sqrt(len(y[::step]) / nodes)
    errors = _standard_errors(probabilities[::step].astype(np.float64), y[::step], predicted[::step])
    found = {}
    for name, value in values.items():
        half = Z * narrower * errors.get(name, 0.0)
        if name == "accuracy":
            interval = wilson(value * nodes, nodes)
        elif name == "log-loss":
            interval = max(0.0, value - half), value + half
        elif 0 < value < 1 and half > 0:
            odds, half = math.log(value / (1 - value)), half / (value * (1 - value))
            interval = float(expit(odds - half)), float(expit(odds + half))
        else:  # no draw differs: what the nodes of the rarest class alone can tell
            interval = wilson(value * (rarest := np.bincount(y)[np.unique(y)].min()), rarest)
        if interval is not None and not math.isnan(value) and name != "calibration-error":
            found[name] = interval
    return found


def _standard_errors(probabilities: Floats, y: Ints, predicted: Ints) -> dict[str, float]:
    """The standard deviation of each metric but accuracy over draws of the nodes."""
    draw, (nodes, classes) = np.random.default_rng(_SEED), probabilities.shape
    weights = draw.poisson(1.0, size=(DRAWS, nodes)).astype(np.float32)
    sizes = weights.sum(axis=1).clip(min=1)
    used, place = np.unique(y * classes + predicted, return_inverse=True)
    cells = np.zeros((nodes, len(used)), dtype=np.float32)
    cells[np.arange(nodes), place] = 1
    counts = np.zeros((DRAWS, classes * classes))
    counts[:, used] = weights @ cells
    counts = counts.reshape(DRAWS, classes, classes)
    found, said, right = counts.sum(axis=2), counts.sum(axis=1), np.einsum("bcc->bc", counts)
    some, seen = found > 0, found + said > 0
    drawn = {
        "balanced-accuracy": (right / found.clip(min=1)).sum(axis=1) / some.sum(axis=1).clip(min=1),
        "macro-f1": (2 * right / (found + said).clip(min=1)).sum(axis=1) / seen.sum(axis=1).clip(min=1),
    }
    own = -np.log(probabilities[np.arange(nodes), y].clip(min=np.finfo(np.float64).eps))
    drawn["log-loss"] = weights @ own / sizes
    drawn |= _ranking(probabilities, y, weights)
    return {name: float(np.std(values[np.isfinite(values)])) for name, values in drawn.items()}


def _ranking(probabilities: Floats, y: Ints, weights: Floats) -> dict[str, Floats]:
    """ROC-AUC and average precision for each draw's weights (B × m), as in :data:`gcnsl.training.METRICS`.

    They are means over the classes that the draw has.
    """
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        return {}
    if probabilities.shape[1] == 2:
        classes = classes[[0 if counts[0] < counts[1] else 1]]
    areas, precisions = [], []
    for c in classes:
        order = np.argsort(-probabilities[:, c], kind="stable")
        ranked, drawn = probabilities[order, c], weights[:, order]
        ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
        found = np.cumsum(drawn * (y[order] == c), axis=1)[:, ends]
        alerts = np.cumsum(drawn, axis=1)[:, ends]
        with np.errstate(invalid="ignore", divide="ignore"):
            recall = np.diff(found, axis=1, prepend=0) / found[:, -1:]
            precisions.append((recall * found / alerts.clip(min=1)).sum(axis=1))
            false = alerts - found
            between = (found + np.pad(found, ((0, 0), (1, 0)))[:, :-1]) / 2
            areas.append((np.diff(false, axis=1, prepend=0) * between).sum(axis=1) / (found[:, -1] * false[:, -1]))
    means = {"roc-auc": areas, "average-precision": precisions}
    return {name: np.ma.masked_invalid(values).mean(axis=0).filled(np.nan) for name, values in means.items()}


class CalibrationVerdict(NamedTuple):
    """Whether probabilities can be believed, a sentence that says so, and what to do; empty if nothing has to be."""

    believable: bool
    words: str
    remedy: str = ""


def judge_calibration(probabilities: Floats, y: Ints) -> CalibrationVerdict | None:
    """Compare the calibration error with that of classes drawn from the probabilities themselves; ``None`` of no nodes.

    On few nodes even perfect probabilities are off by some points in each bin, so the error alone says little.
    """
    nodes = len(y)
    if not nodes:
        return None
    confidence = probabilities.max(axis=1).astype(np.float64)
    bins = calibration_bins(probabilities, y)
    error = float(np.nansum(bins.nodes * np.abs(bins.accuracy - bins.confidence)) / nodes)
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    # A node of a bin is right with its probability, so their number is nearly normal.
    variance = np.bincount(place, weights=confidence * (1 - confidence), minlength=BINS)
    draws = np.abs(np.random.default_rng(_SEED).normal(size=(DRAWS, BINS)) * np.sqrt(variance)).sum(axis=1) / nodes
    chance = float(np.quantile(draws, 0.95))
    sure, right = float(confidence.mean()), float((most_probable(probabilities) == y).mean())
    on, label_more = f"on {nodes:,} nodes", "label more nodes"
    if error <= chance and chance > TELLS_LITTLE:
        words = f"{nodes:,} nodes are too few to tell whether its probabilities can be believed: they are off by"
        words += f" {error:.1%}, and true probabilities may be by {chance:.0%}."
        return CalibrationVerdict(True, words, label_more)
    if error <= max(chance, SMALL_ERROR):
        by_chance = f"no more than chance makes of true probabilities {on}" if error <= chance else f"{on}"
        return CalibrationVerdict(True, f"Its probabilities can be believed: they are off by {error:.1%}, {by_chance}.")
    off = f"off by {error:.1%} {on}, where chance explains {chance:.1%}"
    if abs(sure - right) < error / 2:
        words = f"Its probabilities are uneven: {off}; too high for some nodes and too low for others."
        return CalibrationVerdict(False, words, f"decide by a threshold or by prediction sets, or {label_more}")
    how = "too sure" if sure > right else "too modest"
    words = f"It is {how}: it says {sure:.0%} on average and is right on {right:.0%}; {off}."
    remedy = f"choose models by --metric log-loss, leave out --class-weight, or {label_more}"
    return CalibrationVerdict(False, words, remedy)


def interval_text(interval: Interval | None, *, is_share: bool = True) -> str:
    """An interval in brackets, in whole percents for shares; empty for none."""
    if interval is None:
        return ""
    low, high = interval
    return f"({100 * low:.0f}–{100 * high:.0f})" if is_share else f"({low:.3f}–{high:.3f})"
