"""Tables as figures: SVG that takes its text colour from the page around it, so that it suits light and dark mode."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from gcnsl.datasets.synthetic import synthetic_homophily
from gcnsl.experiments.display_names import column_label
from gcnsl.experiments.measure import CURVE_STEP
from gcnsl.experiments.plan import DEPTHS, MERGES, ablation_row
from gcnsl.experiments.result_tables import Table, TableCell

COLOURS = {
    "mlp": "#8a8f98",
    "gcn": "#3b82c4",
    "gat": "#56b4e9",
    "geom-gcn": "#9a7bd0",
    "mixhop": "#d277a6",
    "h2gcn-1": "#86c98a",
    "h2gcn-2": "#2a9d76",
    "nlgnn": "#b08a5b",
    "gcn-sl-cc": "#e0572f",
    "gcn-sl-av": "#eda63a",
}
"""A method's colour in every figure; all can be told apart on white and on almost black."""
_SERIES = ("#8a8f98", "#56b4e9", "#eda63a", "#e0572f")
_MARKERS = "os^Dv<>Pph*"

CAPTIONS = {
    "accuracy": "Points above or below the paper's mean. Grey: the paper's standard deviation; whiskers: ours.",
    "ablation": "Test accuracy with neither graph, the given one (A), the learned one (A*), and both.",
    "spectral": "Test accuracy with and without the spectral features.",
    "homophily": "Share of edges that join nodes of one class, loops not counted in learned graphs.",
    "depth": "Accuracy over epochs on Cora, mean of the runs, without early stopping.",
    "runtime": "Filled: ours; hollow: the paper's; the axis is logarithmic. 2× says that ours takes half the time.",
    "synthetic": "Test accuracy on synthetic graphs from strong heterophily (left) to strong homophily (right).",
}
"""How to read the figure of each experiment."""

# matplotlib needs numbers for colours; these two are replaced by the page's own colours.
_TEXT, _LINE = "#010203", "#040506"
_STYLE: Mapping[str, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), _TEXT),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), _LINE),
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


def draw(table: Table) -> str | None:
    """The figure of a table as an ``<svg>`` element; ``None`` if there is nothing to draw."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": table.name}):
        figure = _PAINTERS[table.experiment.name](table)
        return None if figure is None else _svg(figure, table.name, table.title)


def standalone(svg: str) -> str:
    """The figure as a file of its own, with the colours that it would otherwise take from the page."""
    style = (
        "<style>svg { color: #1f2328; --line: #d0d7de; font-family: sans-serif }"
        " @media (prefers-color-scheme: dark) { svg { color: #e6edf3; --line: #3d444d } }</style>"
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg.replace(">", f">{style}", 1)}\n'


def _svg(figure: Figure, name: str, title: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (width|height)="[^"]*"', "", text, count=2)  # the page decides the size
    text = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", text)
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)  # ids must be unique in the page
    text = text.replace(_TEXT, "currentColor").replace(_LINE, "var(--line)")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _over_homophily(table: Table) -> Figure:
    """Accuracy of each method over the homophily of synthetic graphs."""
    figure = Figure(figsize=(7.2, 4.2))
    axes = figure.add_subplot()
    for marker, row in zip(_MARKERS, table.rows, strict=False):
        points = {synthetic_homophily(column): table.cells[row, column] for column in table.columns}
        known = {h: cell.mean for h, cell in points.items() if h is not None and cell.mean is not None}
        size, width, order = (4.5, 2.4, 3) if row in MERGES else (3.5, 1.3, 2)
        style: Any = {
            "color": COLOURS.get(row),
            "marker": marker,
            "markersize": size,
            "linewidth": width,
            "zorder": order,
        }
        axes.plot(list(known), list(known.values()), label=_label(table, row), **style)
    axes.set(xlabel="edge homophily h", ylabel="test accuracy, %", xlim=(-0.02, 1.02))
    figure.legend(loc="outside right upper")
    return figure


def _curves(table: Table) -> Figure | None:
    """Accuracy over the epochs, mean of the runs, for GCNs and GCN-SLs of growing depth."""
    figure = Figure(figsize=(9, 3.2))
    panels = figure.subplots(1, 3, sharey=True)
    names = {"train": "training", "val": "validation", "test": "test"}
    styles = dict(zip(map(str, DEPTHS), ("-", "--", ":"), strict=True))
    drawn = False
    for axes, (part, title) in zip(panels, names.items(), strict=True):
        for row in table.rows:
            runs = [result.history[part] for result in table.cells[row, table.columns[0]].good if result.history]
            if not runs:
                continue
            drawn = True
            length = min(map(len, runs))
            curve = 100 * np.mean([run[:length] for run in runs], axis=0)
            method, _, depth = row.rpartition("-")
            label, epochs = _label(table, row), 1 + CURVE_STEP * np.arange(length)
            axes.plot(epochs, curve, styles[depth], color=COLOURS.get(method), label=label, linewidth=1.4)
        axes.set(title=title, xlabel="epoch")
    panels[0].set_ylabel("accuracy, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure if drawn else None


def _beside_the_paper(table: Table) -> Figure | None:
    """The differences of GCN-SL's accuracies to the paper's, whose standard deviation is a bar around zero."""
    rows = [row for row in MERGES if row in table.rows]
    columns = [c for c in table.columns if any(table.cells[row, c].difference is not None for row in rows)]
    if not columns:
        return None
    figure = Figure(figsize=(8.4, 3.6))
    axes = figure.add_subplot()
    axes.use_sticky_edges = False
    axes.axhline(0, color="#8a8f98", linewidth=1.5)
    for number, row in enumerate(rows):
        cells = [table.cells[row, column] for column in columns]
        place = np.arange(len(columns)) + 0.3 * (number - (len(rows) - 1) / 2)
        theirs = np.array([(cell.planned.paper.std or 0.0) if cell.planned.paper else np.nan for cell in cells])
        label = "the paper's mean ± deviation" if number == 0 else None
        axes.bar(place, 2 * theirs, 0.24, bottom=-theirs, color="#8a8f98", alpha=0.35, label=label)
        ours = [np.nan if cell.difference is None else cell.difference for cell in cells]
        _, stds = _numbers(cells)
        axes.errorbar(place, ours, stds, fmt="o", color=COLOURS[row], label=_label(table, row), capsize=3, ms=5)
    axes.set_xticks(range(len(columns)), map(_two_lines, columns))
    axes.set_ylabel("test accuracy less the paper's, points")
    figure.legend(loc="outside upper right", ncols=3)
    return figure


def _bars(table: Table, axes: Any, colours: Mapping[str, str], labels: Mapping[str, str] | None = None) -> None:
    """Bars side by side for each graph, in the order of the colours, for those of the rows that the table has."""
    rows = [row for row in colours if row in table.rows]
    width = 0.8 / len(rows)
    for number, row in enumerate(rows):
        means, stds = _numbers([table.cells[row, column] for column in table.columns])
        place = np.arange(len(table.columns)) + width * (number - (len(rows) - 1) / 2)
        bars = {"color": colours[row], "ecolor": _TEXT, "error_kw": {"elinewidth": 0.8}}
        axes.bar(place, means, 0.9 * width, yerr=stds, label=labels[row] if labels else _label(table, row), **bars)
    axes.set_xticks(range(len(table.columns)), map(_two_lines, table.columns))


def _homophily(table: Table) -> Figure:
    figure = Figure(figsize=(8.4, 3.4))
    axes = figure.add_subplot()
    grey, blue, _, red = _SERIES
    _bars(table, axes, {"original": grey, "initial A*": blue, "nlgnn": COLOURS["nlgnn"], "gcn-sl-cc A*": red})
    axes.set(ylabel="edge homophily h", ylim=(0, 1))
    figure.legend(loc="outside upper right", ncols=4)
    return figure


def _ablation(table: Table) -> Figure:
    """The accuracies themselves: differences to the model with neither graph would hide how useful it is."""
    methods = [method for method in MERGES if any(row.startswith(method) for row in table.rows)]
    figure = Figure(figsize=(8.4, 2.8 * len(methods)))
    variants = {"neither": (False, False), "A": (True, False), "A*": (False, True), "A and A*": (True, True)}
    for axes, method in zip(figure.subplots(len(methods), squeeze=False).flat, methods, strict=True):
        rows = [ablation_row(method, *used) for used in variants.values()]
        _bars(table, axes, dict(zip(rows, _SERIES, strict=True)), dict(zip(rows, variants, strict=True)))
        axes.set(title=_label(table, method), ylabel="test accuracy, %")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return figure


def _spectral(table: Table) -> Figure:
    figure = Figure(figsize=(8.4, 3.2))
    axes = figure.add_subplot()
    pale = {"gcn-sl-cc": "#f0b39f", "gcn-sl-av": "#f6d7a3"}
    shades = {"without": pale, "with": COLOURS}
    _bars(table, axes, {f"{method} {kind} F": shades[kind][method] for method in MERGES for kind in shades})
    axes.set_ylabel("test accuracy, %")
    figure.legend(loc="outside upper right", ncols=2)
    return figure


def _runtime(table: Table) -> Figure:
    """Seconds on a logarithmic axis, ours filled and the paper's hollow."""
    figure = Figure(figsize=(8.4, 3.4))
    axes = figure.add_subplot()
    for number, (row, colour) in enumerate(zip(table.rows, ("#3b82c4", "#2a9d76", "#e0572f"), strict=False)):
        cells = [table.cells[row, column] for column in table.columns]
        place = np.arange(len(table.columns)) + 0.22 * (number - 1)
        means, _ = _numbers(cells)
        paper = [cell.planned.paper.mean if cell.planned.paper else np.nan for cell in cells]
        axes.plot(place, means, "o", color=colour, label=_label(table, row), markersize=6)
        axes.plot(place, paper, "o", color=colour, markerfacecolor="none", markersize=6)
    axes.plot([], [], "o", color="#8a8f98", markerfacecolor="none", label="the paper's")
    axes.set_xticks(range(len(table.columns)), map(_two_lines, table.columns))
    axes.set(yscale="log", ylabel="seconds")
    figure.legend(loc="outside upper right", ncols=4)
    return figure


def _numbers(cells: Sequence[TableCell]) -> tuple[list[float], list[float]]:
    """Means, NaN if there are none, and standard deviations, 0 if there are none."""
    means = [np.nan if cell.mean is None else cell.mean for cell in cells]
    return means, [0.0 if cell.std is None else cell.std for cell in cells]


def _label(table: Table, row: str) -> str:
    """The name of a row with its subscript in mathtext."""
    return re.sub(r"_(\w+)", r"$_{\1}$", table.row_label(row))


def _two_lines(column: str) -> str:
    return column_label(column).replace(" (", "\n(")


_PAINTERS: Mapping[str, Callable[[Table], Figure | None]] = {
    "accuracy": _beside_the_paper,
    "ablation": _ablation,
    "spectral": _spectral,
    "homophily": _homophily,
    "depth": _curves,
    "runtime": _runtime,
    "synthetic": _over_homophily,
}
