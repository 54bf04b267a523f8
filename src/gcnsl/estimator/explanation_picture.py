"""A picture of an explanation: a node between its neighbours, in the given and in the learned graph, and its features.

The neighbours stand in two columns, with their names outside of them, so that no name covers an edge or another name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from gcnsl.estimator.explanation import Explanation, Neighbour
from gcnsl.pictures import save_picture, text_style

_INK, _PALE, _FOR, _AGAINST = "#24292f", "#c5cad1", "#57606a", "#b0b7c0"
_MOST = 48
"""More neighbours than this can't be told apart: the most similar ones are drawn."""
_FEATURES = 8
_LONGEST_NAME = 28
_LETTER, _LINE, _EDGE, _BARS = 0.08, 0.25, 1.5, 2.5
"""Inches: the width of a letter, the height of a line of names, and the widths of an edge and of the features' bars."""
_TITLE = 44
"""The letters in a line of a side's title."""

_WEIGHT_PLACES = {"edge": 0.6, "out": 0.78, "in": 0.48}
"""How far out the weight of a link stands: near the head of its arrow."""


@dataclass(frozen=True)
class _Side:
    """The neighbours in one of the graphs, in the order in which they are drawn, and the lines above them."""

    lines: list[str]
    drawn: list[Neighbour]
    with_links: bool

    @property
    def places(self) -> list[tuple[int, float]]:
        """Where the neighbours stand: x is 1 on the right, which is filled first, and -1 on the left."""
        right = (len(self.drawn) + 1) // 2
        columns = ((1, right), (-1, len(self.drawn) - right))
        return [(x, float(y)) for x, rows in columns for y in (np.linspace(1, -1, rows) if rows > 1 else [0] * rows)]

    @property
    def margin(self) -> float:
        """The inches that names take on either side."""
        return 0.25 + _LETTER * max((len(_shortened(other.id)) for other in self.drawn), default=0)

    @property
    def inches(self) -> float:
        """The width of the side; without neighbours it only has a title."""
        columns = len({x for x, _ in self.places})
        return max(2.2 if columns == 0 else _LETTER * _TITLE, columns * (_EDGE + self.margin))

    @property
    def title(self) -> str:
        """The lines, each broken to fit the width of the side."""
        return "\n".join(fill(line, int(self.inches / _LETTER)) for line in self.lines)


def draw_explanation(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write the picture (format by the file's ending) and return its path."""
    with mpl.rc_context({"font.size": 10} | text_style()):
        return save_picture(_figure(explanation), path)


def _figure(explanation: Explanation) -> Figure:
    """Lay out the sides and the features, each as wide as its names need."""
    colors, node = _class_colors(explanation), explanation.node
    sides = [_side("Given graph A", explanation, explanation.original, colors)]
    if explanation.reconnected is not None:
        sides.append(_side("Learned graph A*", explanation, explanation.reconnected, colors))
    feature_names = (len(_shortened(feature.name)) for feature in (explanation.features or [])[:_FEATURES])
    before_bars = 0.3 + 1.1 * _LETTER * max(feature_names, default=0)
    width = sum(side.inches + 0.2 for side in sides) + before_bars + _BARS + 0.5
    handles, columns = _legend(explanation, colors), max(1, int(width / 2))
    height = max(_LINE * max((len(side.drawn) + 1) // 2 for side in sides), 2.4)
    bars = min(height, 3.0)  # they do not grow with the number of neighbours
    below = 0.8 + _LINE * -(-len(handles) // columns)
    known = "" if node.label is None else f", known to be {node.label}"
    told = f"{node.id}: class {node.predicted} with probability {node.probability:.2f}{known}"
    told = fill(told, int(width / 0.12))
    above = 0.3 + 0.2 * told.count("\n") + 0.17 * max(2 + side.title.count("\n") for side in sides)
    total = below + height + above
    figure = Figure(figsize=(width, total), dpi=120)
    left = 0.1
    for side in sides:
        axes = figure.add_axes((left / width, below / total, side.inches / width, height / total))
        _draw_side(axes, side, colors[node.predicted], colors)
        left += side.inches + 0.2
    at = ((left + before_bars) / width, (below + height - bars) / total, _BARS / width, bars / total)
    _draw_features(figure.add_axes(at), explanation)
    figure.suptitle(told, weight="bold", color=_INK, y=1 - 0.1 / total, va="top")
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False)
    return figure


def _side(title: str, explanation: Explanation, neighbours: list[Neighbour], colors: Mapping[Any, Any]) -> _Side:
    is_given = neighbours is explanation.original
    is_crowded = not is_given and explanation.is_crowded
    shown = [] if is_crowded else neighbours[:_MOST]
    lines = [title, *explanation.summary(neighbours).replace(") and ", ")\nand ").split("\n")]
    if is_crowded:
        lines.append("so many that A* tells nothing about this node")
    elif len(neighbours) > _MOST:
        lines.append(f"the {_MOST} most similar are shown")
    if is_given and any(set(other.links.values()) - {None} for other in shown):
        lines.append("the numbers are weights of edges")
    by_class = sorted(shown, key=lambda other: list(colors).index(other.best_known))
    return _Side(lines, by_class, with_links=is_given)


def _class_colors(explanation: Explanation) -> dict[Any, Any]:
    """A colour for each class that is to be seen, the node's own first."""
    seen = [explanation.node, *explanation.original, *(explanation.reconnected or [])]
    present = {node.best_known for node in seen} | {explanation.node.predicted}
    classes = [c for c in explanation.probabilities if c in present]
    palette = mpl.colormaps["tab10" if len(classes) <= 10 else "tab20"]
    return {c: palette(i % palette.N) for i, c in enumerate(classes)}


def _draw_side(axes: Axes, side: _Side, color: Any, colors: Mapping[Any, Any]) -> None:
    """Draw the node, which the picture's title names, in its colour between its neighbours."""
    columns = {x for x, _ in side.places}
    edge = side.inches / max(len(columns), 1) - side.margin
    half = 1 + side.margin / edge  # nodes are at x = ±1
    axes.set(xlim=(-0.25 if columns == {1} else -half, half), ylim=(-1.1, 1.1))
    axes.set_axis_off()
    axes.set_title(side.title, color=_INK, fontsize=9)
    for (x, y), other in zip(side.places, side.drawn, strict=True):
        _draw_edge(axes, other, x, y, with_links=side.with_links)
        _draw_neighbour(axes, other, x, y, colors[other.best_known])
    axes.plot(0, 0, "o", markersize=26, color=color, markeredgecolor=_INK, markeredgewidth=2, zorder=3)


def _draw_edge(axes: Axes, other: Neighbour, x: int, y: float, *, with_links: bool) -> None:
    """Draw the edge to a neighbour; with its links it has heads and, beside each head, the weight."""
    both = other.original and other.reconnected
    links = other.links if with_links else {}
    heads = ("<|-" if "in" in links else "-") + ("|>" if "out" in links else "")
    color, width = (_INK, 2.2) if both else (_PALE, 1)
    arrow = FancyArrowPatch((0, 0), (x, y), arrowstyle=heads, mutation_scale=12, shrinkA=14, shrinkB=7)
    arrow.set(color=color, linewidth=width)  # it is shrunk, in points, to the rims of the two nodes
    axes.add_patch(arrow)
    for way, weight in links.items():
        if weight is not None:
            at = _WEIGHT_PLACES[way]
            axes.text(
                at * x, at * y, f"{weight:.3g}", fontsize=7, color=_INK, rotation=np.degrees(np.arctan(y / x)),
                rotation_mode="anchor", transform_rotates_text=True, ha="center", va="bottom", zorder=2,
            )  # fmt: skip


def _draw_neighbour(axes: Axes, other: Neighbour, x: int, y: float, color: Any) -> None:
    fill_color = color if other.label is not None else "white"
    axes.plot(x, y, "o", markersize=11, color=fill_color, markeredgecolor=color, markeredgewidth=2, zorder=2)
    axes.annotate(
        _shortened(other.id), (x, y), xytext=(10 * x, 0), textcoords="offset points", fontsize=9, color=_INK,
        ha="left" if x > 0 else "right", va="center",
    )  # fmt: skip


def _draw_features(axes: Axes, explanation: Explanation) -> None:
    """Draw the largest shares of features as bars."""
    shown = (explanation.features or [])[:_FEATURES]
    places, shares = range(len(shown)), [feature.log_odds for feature in shown]
    axes.barh(places, shares, color=[_FOR if share > 0 else _AGAINST for share in shares], height=0.6)
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set_yticks(places, [_shortened(feature.name) for feature in shown])
    axes.set_ylim(_FEATURES - 0.4, -0.6)  # the largest on top
    wanted, rival = _shortened(explanation.node.predicted), _shortened(explanation.rival)
    axes.set_xlabel(f"log-odds for {wanted}\nagainst {rival}", fontsize=9)
    axes.set_title("Its own features", color=_INK, fontsize=9)
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
    if any(other.reconnected for other in explanation.original):
        handles.append(Line2D([], [], color=_INK, linewidth=2.2, label="in both graphs"))
    return handles
