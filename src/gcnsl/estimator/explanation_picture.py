"""A picture of an explanation: a node among its neighbours, in the given graph and in the learned one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from gcnsl.estimator.explanation import Explanation, Neighbour
from gcnsl.pictures import save_picture

_INK, _PALE = "#24292f", "#c5cad1"
_MOST = 36
"""More neighbours than this can't be told apart: the most similar ones are drawn."""


def draw_explanation(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write the picture (format by the file's ending) and return its path."""
    colors = _class_colors(explanation)
    node = explanation.node
    with mpl.rc_context({"font.size": 10}):
        figure = Figure(figsize=(12.5, 7.3), layout=ConstrainedLayoutEngine(h_pad=0.12), dpi=120)
        given, learned = figure.subplots(1, 2)
        _draw_side(given, "Given graph A", explanation, explanation.original, colors)
        _draw_side(learned, "Learned graph A*", explanation, explanation.reconnected, colors)
        known = "" if node.label is None else f", known to be {node.label}"
        figure.suptitle(
            f"{node.id}: {node.predicted} with probability {node.probability:.2f}{known}", weight="bold", color=_INK
        )
        figure.legend(handles=_legend(explanation, colors), loc="outside lower center", ncols=6, frameon=False)
        return save_picture(figure, path)


def _class_colors(explanation: Explanation) -> dict[Any, Any]:
    """A colour for each class that is to be seen, the node's own first."""
    seen = [explanation.node, *explanation.original, *(explanation.reconnected or [])]
    present = {node.best_known for node in seen} | {explanation.node.predicted}
    classes = [c for c in explanation.probabilities if c in present]
    palette = mpl.colormaps["tab10" if len(classes) <= 10 else "tab20"]
    return {c: palette(i % palette.N) for i, c in enumerate(classes)}


def _draw_side(
    axes: Axes, title: str, explanation: Explanation, neighbours: list[Neighbour] | None, colors: Mapping[Any, Any]
) -> None:
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.set_xlim(-1.9, 1.9)
    axes.set_ylim(-1.75, 1.75)
    summary = "none in this model" if neighbours is None else explanation.summary(neighbours)
    part = f" ({_MOST} most similar shown)" if len(neighbours or []) > _MOST else ""
    axes.set_title(f"{title}: {summary}{part}", color=_INK, fontsize=11)
    drawn = sorted((neighbours or [])[:_MOST], key=lambda other: list(colors).index(other.best_known))
    for place, other in enumerate(drawn, start=1):
        angle = np.pi / 2 - 2 * np.pi * (place - 0.5) / len(drawn)
        _draw_neighbour(axes, other, angle, colors[other.best_known])
    node = explanation.node
    axes.plot(0, 0, "o", markersize=26, color=colors[node.predicted], markeredgecolor=_INK, markeredgewidth=2, zorder=3)
    axes.annotate(
        str(node.id), (0, 0), xytext=(0, -24), textcoords="offset points", ha="center", va="center", weight="bold",
        color=_INK, zorder=5, bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.8, "linewidth": 0},
    )  # fmt: skip


def _draw_neighbour(axes: Axes, other: Neighbour, angle: float, color: Any) -> None:
    x, y = np.cos(angle), np.sin(angle)
    both = other.original and other.reconnected
    axes.plot([0, x], [0, y], color=_INK if both else _PALE, linewidth=2.2 if both else 1, zorder=1)
    fill = color if other.label is not None else "white"
    axes.plot(x, y, "o", markersize=12, color=fill, markeredgecolor=color, markeredgewidth=2, zorder=2)
    left, name = x < -1e-9, str(other.id)
    axes.text(
        1.1 * x, 1.1 * y, name if len(name) <= 20 else f"{name[:19]}…", fontsize=8, color=_INK,
        rotation=np.degrees(angle) + (180 if left else 0), rotation_mode="anchor",
        ha="right" if left else "left", va="center",
    )  # fmt: skip


def _legend(explanation: Explanation, colors: Mapping[Any, Any]) -> list[Line2D]:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 9, "markeredgewidth": 2}
    handles = [Line2D([], [], color=color, label=str(name), **dot) for name, color in colors.items()]
    handles.append(Line2D([], [], color="grey", label="class known to training", **dot))
    handles.append(Line2D([], [], color="white", markeredgecolor="grey", label="class predicted", **dot))
    if explanation.reconnected is not None:
        handles.append(Line2D([], [], color=_INK, linewidth=2.2, label="in both graphs"))
    return handles
