"""A picture of a comparison: every run of every method, and their means."""

import itertools
import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gcnsl.evaluation.comparison import Comparison
from gcnsl.pictures import save_picture
from gcnsl.training import METRICS

_INK, _BEST, _OTHER = "#24292f", "#1f6f8b", "#9aa5b1"


def draw_comparison(comparison: Comparison, path: str | os.PathLike[str], *, graph: str) -> Path:
    """Write the picture of at least one run (format by the file's ending), titled with the graph's name."""
    ranking, metric = comparison.ranking, METRICS[comparison.metric]
    with mpl.rc_context({"font.size": 10}):
        figure = Figure(figsize=(8.5, 1.5 + 0.55 * len(ranking)), layout=ConstrainedLayoutEngine(h_pad=0.1), dpi=120)
        axes = figure.subplots()
        _draw_runs(axes, comparison)
        axes.set_yticks(range(len(ranking)), [_label(comparison, name) for name in ranking])
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


def _label(comparison: Comparison, name: str) -> str:
    """The method's name, and what can't be told apart from the best."""
    lead = comparison.against_best(name)
    return name if lead is None else name + {"equal": " ≈ best", "undecided": " (undecided)", "clear": ""}[lead.verdict]


def _draw_runs(axes: Axes, comparison: Comparison) -> None:
    """A dot per run, a thin line to the next method's dot of the same split, and a bar for the mean."""
    metric = METRICS[comparison.metric]
    values = [(100 if metric.is_share else 1) * np.array(comparison.values(name)) for name in comparison.ranking]
    for row, (above, below) in enumerate(itertools.pairwise(values)):
        for pair in zip(above, below, strict=False):
            axes.plot(pair, [row, row + 1], color=_OTHER, alpha=0.35, linewidth=0.8, zorder=1)
    for row, (name, runs) in enumerate(zip(comparison.ranking, values, strict=True)):
        color = _BEST if row == 0 else _OTHER
        axes.plot(runs, [row] * len(runs), "o", color=color, alpha=0.75, markersize=6, zorder=2)
        axes.plot(runs.mean(), row, "|", color=_INK, markersize=24, markeredgewidth=2.5, zorder=3)
        axes.annotate(
            metric.text(comparison.mean(name), percent_sign=False), (runs.mean(), row), xytext=(0, 15),
            textcoords="offset points", ha="center", fontsize=8, color=_INK, zorder=4,
        )  # fmt: skip
