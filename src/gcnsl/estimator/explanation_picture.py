"""A picture of an explanation: a node among its neighbours, in the given and in the learned graph, and its features."""

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
from matplotlib.patches import FancyArrowPatch

from gcnsl.estimator.explanation import Explanation, Neighbour
from gcnsl.pictures import LITERAL_TEXT, save_picture

_INK, _PALE, _FOR, _AGAINST = "#24292f", "#c5cad1", "#57606a", "#b0b7c0"
_MOST = 36
"""More neighbours than this can't be told apart: the most similar ones are drawn."""
_UPRIGHT = 14
"""Up to so many names fit around the circle in upright letters; more are turned outwards."""
_FEATURES = 8
_LONGEST_NAME = 20
_LETTER = 0.024
"""The width of a letter, as a share of half the width of a side."""

_WEIGHT_PLACES = {"edge": 0.6, "out": 0.78, "in": 0.48}
"""How far out the weight of a link stands: near the head of its arrow."""


def draw_explanation(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write the picture (format by the file's ending) and return its path."""
    colors = _class_colors(explanation)
    node = explanation.node
    sides = {"Given graph A": explanation.original}
    if explanation.reconnected is not None:
        sides["Learned graph A*"] = explanation.reconnected
    with mpl.rc_context({"font.size": 10} | LITERAL_TEXT):
        figure = Figure(figsize=(5.6 * len(sides) + 3.6, 6.9), layout=ConstrainedLayoutEngine(h_pad=0.1), dpi=120)
        *graphs, features = figure.subplots(1, len(sides) + 1, width_ratios=[5.6] * len(sides) + [3.2])
        for axes, (title, neighbours) in zip(graphs, sides.items(), strict=True):
            _draw_side(axes, title, explanation, neighbours, colors)
        _draw_features(features, explanation)
        known = "" if node.label is None else f", known to be {node.label}"
        figure.suptitle(
            f"{node.id}: class {node.predicted} with probability {node.probability:.2f}{known}",
            weight="bold",
            color=_INK,
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
    axes: Axes, title: str, explanation: Explanation, neighbours: list[Neighbour], colors: Mapping[Any, Any]
) -> None:
    """Draw the node, which its picture's title names, in a circle of its neighbours, with their names around it."""
    axes.set_axis_off()
    is_crowded = neighbours is explanation.reconnected and explanation.is_crowded
    shown = [] if is_crowded else neighbours[:_MOST]
    drawn = sorted(shown, key=lambda other: list(colors).index(other.best_known))
    longest = max((len(_shortened(other.id)) for other in drawn), default=0)
    half = 1.18 / (1 - _LETTER * longest)  # the circle has radius 1
    upright = len(drawn) <= _UPRIGHT
    high = 1.25 if upright else half  # upright names need no room above, so that the circle may be stretched
    axes.set(xlim=(-half, half), ylim=(-high, high), aspect="auto" if upright else "equal")
    lines = [title, explanation.summary(neighbours)]
    if is_crowded:
        lines.append("so many that A* tells nothing about this node")
    elif len(neighbours) > _MOST:
        lines.append(f"the {_MOST} most similar are shown")
    if neighbours is explanation.original and any(set(other.links.values()) - {None} for other in shown):
        lines.append("the numbers are weights of edges")
    axes.set_title("\n".join(lines), color=_INK, fontsize=10)
    for place, other in enumerate(drawn, start=1):
        angle = np.pi / 2 - 2 * np.pi * (place - 0.5) / len(drawn)
        _draw_edge(axes, other, angle, with_links=neighbours is explanation.original)
        _draw_neighbour(axes, other, angle, colors[other.best_known], upright=upright)
    color = colors[explanation.node.predicted]
    axes.plot(0, 0, "o", markersize=26, color=color, markeredgecolor=_INK, markeredgewidth=2, zorder=3)


def _draw_edge(axes: Axes, other: Neighbour, angle: float, *, with_links: bool) -> None:
    """Draw the edge to a neighbour; with its links it has heads and, beside each head, the weight."""
    x, y = np.cos(angle), np.sin(angle)
    both = other.original and other.reconnected
    links = other.links if with_links else {}
    heads = ("<|-" if "in" in links else "-") + ("|>" if "out" in links else "")
    color, width = (_INK, 2.2) if both else (_PALE, 1)
    arrow = FancyArrowPatch((0, 0), (x, y), arrowstyle=heads, mutation_scale=12, shrinkA=14, shrinkB=7)
    arrow.set(color=color, linewidth=width)  # it is shrunk, in points, to the rims of the two nodes
    axes.add_patch(arrow)
    for way, weight in links.items():
        if weight is not None:
            at, turn = _WEIGHT_PLACES[way], np.degrees(angle) + (180 if x < -1e-9 else 0)
            axes.text(
                at * x, at * y, f"{weight:.3g}", fontsize=7, color=_INK, rotation=turn, rotation_mode="anchor",
                transform_rotates_text=True, ha="center", va="bottom", zorder=2,
            )  # fmt: skip


def _draw_neighbour(axes: Axes, other: Neighbour, angle: float, color: Any, *, upright: bool) -> None:
    x, y = np.cos(angle), np.sin(angle)
    fill = color if other.label is not None else "white"
    axes.plot(x, y, "o", markersize=12, color=fill, markeredgecolor=color, markeredgewidth=2, zorder=2)
    left, above = x < -1e-9, abs(x) < 0.2
    rotation = 0.0 if upright else np.degrees(angle) + (180 if left else 0)
    across = "center" if upright and above else "right" if left else "left"
    along = ("bottom" if y > 0 else "top") if upright and above else "center"
    axes.text(
        1.13 * x, 1.13 * y, _shortened(other.id), fontsize=9 if upright else 8, color=_INK, rotation=rotation,
        rotation_mode="anchor", ha=across, va=along,
    )  # fmt: skip


def _draw_features(axes: Axes, explanation: Explanation) -> None:
    """Draw the largest shares of features as bars."""
    shown = (explanation.features or [])[:_FEATURES]
    places, shares = range(len(shown)), [feature.log_odds for feature in shown]
    axes.barh(places, shares, color=[_FOR if share > 0 else _AGAINST for share in shares], height=0.6)
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set_yticks(places, [_shortened(feature.name) for feature in shown])
    axes.set_ylim(_FEATURES - 0.4, -0.6)  # the largest on top
    axes.set_xlabel(f"log-odds for {explanation.node.predicted} against {explanation.rival}")
    axes.set_title("Its own features", color=_INK, fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _shortened(name: Any) -> str:
    text = str(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _legend(explanation: Explanation, colors: Mapping[Any, Any]) -> list[Line2D]:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 9, "markeredgewidth": 2}
    handles = [Line2D([], [], color=color, label=str(name), **dot) for name, color in colors.items()]
    handles.append(Line2D([], [], color="grey", label="class known to training", **dot))
    handles.append(Line2D([], [], color="white", markeredgecolor="grey", label="class predicted", **dot))
    if explanation.reconnected is not None:
        handles.append(Line2D([], [], color=_INK, linewidth=2.2, label="in both graphs"))
    return handles
