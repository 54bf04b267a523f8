"""Pictures: a comparison, and how good a model is.

A comparison shows every run of every method, and their means; its axis shows the methods, and the value of always
guessing the most frequent class, which may be far off, is beside its name. How good a model is shows in the confusion
matrix, in the calibration beside it, and in what other thresholds would find of the class that is looked for.
"""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from gcnsl.evaluation.comparison import MAJORITY, Comparison
from gcnsl.evaluation.measured import Measured
from gcnsl.pictures import save_picture, text_style
from gcnsl.training import METRICS
from gcnsl.training.decisions import Curve
from gcnsl.training.metrics import BINS

MOST_NUMBERS = 12
"""With more classes, numbers in the confusion matrix would be too small to read."""
_INK, _BLUE, _GREY, _ORANGE = "#24292f", "#1f6f8b", "#9aa5b1", "#d1661f"


def draw_comparison(comparison: Comparison, path: str | os.PathLike[str], *, graph: str) -> Path:
    """Write the picture of at least one run (format by the file's ending), titled with the graph's name."""
    ranking, metric = comparison.ranking, METRICS[comparison.metric]
    with mpl.rc_context({"font.size": 10} | text_style()):
        figure = Figure(figsize=(8.5, 1.5 + 0.55 * len(ranking)), layout=ConstrainedLayoutEngine(h_pad=0.1), dpi=120)
        axes = figure.subplots()
        _draw_runs(axes, comparison)
        axes.set_yticks(range(len(ranking)), _labels(comparison))
        axes.invert_yaxis()
        axes.set_ylim(len(ranking) - 0.5, -0.5)
        axes.set_xlabel(f"test {comparison.metric}{' (%)' if metric.is_share else ''}")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(left=False)
        axes.grid(axis="x", alpha=0.3)
        runs = max(len(comparison.values(name)) for name in ranking)
        where = "with different seeds on one split" if comparison.test_share == 0 < runs - 1 else "on the same splits"
        figure.suptitle(f"{graph}: {runs} run{'s' if runs > 1 else ''} {where}", weight="bold", color=_INK)
        return save_picture(figure, path)


def _labels(comparison: Comparison) -> list[str]:
    """The methods' names, with what can't be told apart from the best, and the value of the majority class."""
    remarks, leads = {"equal": " ≈ best", "undecided": " (undecided)", "clear": ""}, comparison.leads
    labels = {name: name + (remarks[leads[name].verdict] if name in leads else "") for name in comparison.ranking}
    if MAJORITY in labels and len(labels) > 1:
        labels[MAJORITY] += f": {METRICS[comparison.metric].text(comparison.mean(MAJORITY), percent_sign=False)}"
    return [*labels.values()]


def _draw_runs(axes: Axes, comparison: Comparison) -> None:
    """A dot per run, a thin line to the next method's dot of the same split, and a bar for the mean."""
    metric = METRICS[comparison.metric]
    unit = 100 if metric.is_share else 1
    rows = [(row, name) for row, name in enumerate(comparison.ranking) if name != MAJORITY or len(comparison.runs) == 1]
    values = {row: unit * np.array(comparison.values(name)) for row, name in rows}
    for above, below in itertools.pairwise(values):
        for pair in zip(values[above], values[below], strict=False):
            axes.plot(pair, [above, below], color=_GREY, alpha=0.35, linewidth=0.8, zorder=1)
    for row, name in rows:
        runs, mean = values[row], values[row].mean()
        axes.plot(runs, [row] * len(runs), "o", color=_BLUE if row == 0 else _GREY, alpha=0.75, markersize=6, zorder=2)
        axes.plot(mean, row, "|", color=_INK, markersize=24, markeredgewidth=2.5, zorder=3)
        text = metric.text(comparison.mean(name), percent_sign=False)
        above_it: dict[str, Any] = {"xytext": (0, 15), "textcoords": "offset points", "ha": "center"}
        axes.annotate(text, (mean, row), fontsize=8, color=_INK, zorder=4, **above_it)


def draw_measured(measured: Measured, path: str | os.PathLike[str], *, title: str) -> Path:
    """Write the picture (format by the file's ending)."""
    side = float(np.clip(0.45 * len(measured.classes) + 2.2, 4.0, 9.0))
    with mpl.rc_context({"font.size": 9} | text_style()):
        layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.12)
        widths = [side, 4.0] if measured.positive is None else [side, 4.0, 4.0]
        figure = Figure(figsize=(sum(widths) + 1.0, side + 1.2), layout=layout, dpi=120)
        matrix, calibration, *thresholds = figure.subplots(1, len(widths), width_ratios=widths)
        _draw_confusion(matrix, np.array(measured.confusion), [each.name for each in measured.classes])
        _draw_calibration(calibration, measured)
        for axes in thresholds:
            _draw_thresholds(axes, measured, measured.positive or 0)
        figure.suptitle(f"{title}: {measured.in_words}", weight="bold", color=_INK)
        return save_picture(figure, path)


def _draw_confusion(axes: Axes, counts: np.ndarray, names: Sequence[str]) -> None:
    """Colours are shares of the true class, so that rare classes can be read too; numbers are nodes."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    axes.set_title("Which class is taken for which")
    if len(names) <= MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.6 else _INK if count else _GREY
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=color)


def _draw_calibration(axes: Axes, measured: Measured) -> None:
    """How often predictions of a certain probability are right; dots are as large as they have nodes."""
    nodes, confidence, accuracy = (np.array(measured.calibration[name]) for name in ("nodes", "confidence", "accuracy"))
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=1, zorder=1)
    some = nodes > 0
    sizes = 30 + 300 * nodes[some] / max(1, nodes.max())
    axes.scatter(confidence[some], accuracy[some], s=sizes, color=_BLUE, alpha=0.8, zorder=2)
    axes.set(xlim=(-0.02, 1.04))
    axes.set_xlabel(f"probability of the predicted class, in {BINS} steps")
    axes.set_ylabel("share that is right")
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    _in_percent(axes)
    name = "calibration-error"
    axes.set_title(f"Calibration (error {METRICS[name].text(measured.metrics[name])})")


def _draw_thresholds(axes: Axes, measured: Measured, positive: int) -> None:
    """Precision and recall of a class against its threshold, with a dot on each curve at the one in use."""
    curve = Curve.of(measured.probabilities[:, positive], measured.truth == positive)
    values, alerts, found = np.array(curve.points()).T
    used = 0.5 if measured.threshold is None else measured.threshold.value  # the likelier one of two classes
    at, right = curve.at(used)
    axes.axvline(min(used, 1.0), color=_GREY, linewidth=1, zorder=1)
    counts = {"precision": (_BLUE, alerts, at), "recall": (_ORANGE, curve.positives, curve.positives)}
    for name, (color, of, of_used) in counts.items():
        share = f"{right / of_used:.0%}" if of_used else "–"
        axes.plot(values, found / np.maximum(of, 1), color=color, drawstyle="steps-post", label=f"{name} {share}")
        if of_used:
            axes.plot(used, right / of_used, "o", color=color, markersize=8)
    axes.set_xlabel(f"threshold of the probability, {used:.3g} in use: {at:,} alerts")
    _in_percent(axes)
    axes.legend(frameon=False)
    axes.set_title(f"Precision and recall of {measured.class_names[positive]}")


def _in_percent(axes: Axes) -> None:
    """A square picture of shares."""
    axes.set(ylim=(-0.04, 1.06), box_aspect=1)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.spines[["top", "right"]].set_visible(False)
