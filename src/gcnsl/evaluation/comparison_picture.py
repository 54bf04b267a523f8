"""A picture of a comparison: every run of every method, and their means.

The axis shows the methods. If always guessing the most frequent class is far off, an arrow points to its value.
"""

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from gcnsl.evaluation.comparison import Comparison
from gcnsl.evaluation.comparison_verdict import Difference
from gcnsl.evaluation.majority import MAJORITY
from gcnsl.pictures import save_picture, text_style
from gcnsl.training import METRICS

FAR = 0.5
"""The majority class is drawn as an arrow if it is farther off than this share of the methods' range."""
MARGIN = 0.1
"""How much of that range is left free on both sides then."""
_INK, _BEST, _OTHER = "#24292f", "#1f6f8b", "#9aa5b1"


def draw_comparison(comparison: Comparison, path: str | os.PathLike[str], *, graph: str) -> Path:
    """Write the picture of at least one run (format by the file's ending), titled with the graph's name."""
    ranking, metric = comparison.ranking, METRICS[comparison.metric]
    with mpl.rc_context({"font.size": 10} | text_style()):
        figure = Figure(figsize=(8.5, 1.5 + 0.55 * len(ranking)), layout=ConstrainedLayoutEngine(h_pad=0.1), dpi=120)
        axes = figure.subplots()
        _draw_runs(axes, comparison)
        leads = comparison.leads
        axes.set_yticks(range(len(ranking)), [_label(name, leads.get(name)) for name in ranking])
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


def _label(name: str, lead: Difference | None) -> str:
    """The method's name, and what can't be told apart from the best."""
    return name if lead is None else name + {"equal": " ≈ best", "undecided": " (undecided)", "clear": ""}[lead.verdict]


def _draw_runs(axes: Axes, comparison: Comparison) -> None:
    """A dot per run, a thin line to the next method's dot of the same split, and a bar for the mean."""
    metric = METRICS[comparison.metric]
    unit = 100 if metric.is_share else 1
    values = {name: unit * np.array(comparison.values(name)) for name in comparison.ranking}
    limits = _limits(values)
    for row, (above, below) in enumerate(itertools.pairwise(values)):
        if limits is None or MAJORITY not in (above, below):
            for pair in zip(values[above], values[below], strict=False):
                axes.plot(pair, [row, row + 1], color=_OTHER, alpha=0.35, linewidth=0.8, zorder=1)
    for row, (name, runs) in enumerate(values.items()):
        text = metric.text(comparison.mean(name), percent_sign=False)
        if limits is not None and name == MAJORITY:
            _point_off(axes, row, text, left=runs.mean() < limits[0])
            continue
        color = _BEST if row == 0 else _OTHER
        axes.plot(runs, [row] * len(runs), "o", color=color, alpha=0.75, markersize=6, zorder=2)
        axes.plot(runs.mean(), row, "|", color=_INK, markersize=24, markeredgewidth=2.5, zorder=3)
        axes.annotate(
            text, (runs.mean(), row), xytext=(0, 15), textcoords="offset points", ha="center", fontsize=8, color=_INK,
            zorder=4,
        )  # fmt: skip
    axes.set_xlim(limits)


def _limits(values: Mapping[str, NDArray[np.float64]]) -> tuple[float, float] | None:
    """The part of the axis that shows the methods, if the majority class is so far off that it would squeeze them."""
    methods = np.concatenate([[], *(runs for name, runs in values.items() if name != MAJORITY)])
    if MAJORITY not in values or not np.isfinite(methods).all() or np.ptp(methods) == 0:
        return None
    low, high, span = methods.min(), methods.max(), np.ptp(methods)
    majority = values[MAJORITY].mean()
    if not max(low - majority, majority - high) > FAR * span:
        return None
    return float(low - MARGIN * span), float(high + MARGIN * span)


def _point_off(axes: Axes, row: int, text: str, *, left: bool) -> None:
    """An arrow to a value beyond the left or the right edge of the axis."""
    axes.annotate(
        text, (0 if left else 1, row), xycoords=axes.get_yaxis_transform(), xytext=(30 if left else -30, 0),
        textcoords="offset points", ha="left" if left else "right", va="center", fontsize=8, color=_INK,
        arrowprops={"arrowstyle": "-|>", "color": _OTHER},
    )  # fmt: skip
