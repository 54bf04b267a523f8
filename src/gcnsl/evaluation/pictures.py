"""How good a model is, as a picture: the confusion matrix, and the calibration beside it."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from gcnsl.evaluation.measured import Measured
from gcnsl.pictures import save_picture, text_style
from gcnsl.training import METRICS
from gcnsl.training.metrics import BINS

MOST_NUMBERS = 12
"""With more classes, numbers in the confusion matrix would be too small to read."""
_INK, _BLUE, _GREY = "#24292f", "#1f6f8b", "#9aa5b1"


def draw_measured(measured: Measured, path: str | os.PathLike[str], *, title: str) -> Path:
    """Write the picture (format by the file's ending)."""
    side = float(np.clip(0.45 * len(measured.classes) + 2.2, 4.0, 9.0))
    with mpl.rc_context({"font.size": 9} | text_style()):
        layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.12)
        figure = Figure(figsize=(side + 5.0, side + 1.2), layout=layout, dpi=120)
        matrix, calibration = figure.subplots(1, 2, width_ratios=(side, 4.0))
        _draw_confusion(matrix, np.array(measured.confusion), [each.name for each in measured.classes])
        _draw_calibration(calibration, measured)
        figure.suptitle(f"{title}: {measured.nodes:,} nodes", weight="bold", color=_INK)
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
    axes.set(xlim=(-0.02, 1.04), ylim=(-0.04, 1.06), box_aspect=1)
    axes.set_xlabel(f"probability of the predicted class, in {BINS} steps")
    axes.set_ylabel("share that is right")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    axes.spines[["top", "right"]].set_visible(False)
    name = "calibration-error"
    axes.set_title(f"Calibration (error {METRICS[name].text(measured.metrics[name])})")
