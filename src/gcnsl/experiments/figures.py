"""Tables as figures: SVG that takes its text colour from the page around it, so that it suits light and dark mode."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gcnsl.datasets.benchmarks import synthetic_homophily
from gcnsl.experiments.beyond import PARTS, WHOLE
from gcnsl.experiments.plan import COMPARED, CURVE_STEP, DEPTHS, MERGES
from gcnsl.experiments.tables import PLAIN, TWINS, Table, column_label

_IN_ORDER = "#8a8f98 #3b82c4 #56b4e9 #9a7bd0 #d277a6 #86c98a #2a9d76 #b08a5b #e0572f #eda63a"
COLOURS = dict(zip(COMPARED, _IN_ORDER.split(), strict=True))
"""A method's colour in every figure; all can be told apart on white and on almost black."""
_SERIES = ("#8a8f98", "#56b4e9", "#eda63a", "#e0572f")
_MARKERS = "os^Dv<>Pph*"
_STYLE = Path(__file__).parent / "page" / "figures.mplstyle"
_TEXT, _LINE = "#010203", "#040506"
"""matplotlib needs numbers for colours; these two of the style are replaced by the page's own colours."""


def draw(table: Table) -> str | None:
    """The figure of a table as an ``<svg>`` element; ``None`` if there is nothing to draw."""
    paint, size, legend = _PAINTERS[table.experiment]
    buffer = io.StringIO()
    with mpl.style.context([_STYLE, {"svg.hashsalt": table.name}]):
        figure = Figure(figsize=size)
        paint(table, figure)
        if not any(axes.has_data() for axes in figure.axes):
            return None
        figure.legend(*figure.axes[0].get_legend_handles_labels(), **legend)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' (width|height)="[^"]*"', "", text, count=2)  # the page decides the size
    text = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", text)
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{table.name}-", text)  # ids must be unique in the page
    text = text.replace(_TEXT, "currentColor").replace(_LINE, "var(--line)")
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(table.title)}" ', 1)


def standalone(svg: str) -> str:
    """The figure as a file of its own, with the colours that it would otherwise take from the page."""
    style = (
        "<style>svg { color: #1f2328; --line: #d0d7de; font-family: sans-serif }"
        " @media (prefers-color-scheme: dark) { svg { color: #e6edf3; --line: #3d444d } }</style>"
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg.replace(">", f">{style}", 1)}\n'


def _over_homophily(table: Table, figure: Figure) -> None:
    """Accuracy of each method over the homophily of synthetic graphs."""
    axes = figure.add_subplot()
    for marker, row in zip(_MARKERS, table.rows, strict=False):
        points = {synthetic_homophily(column): table.cells[row, column] for column in table.columns}
        known = {h: cell.mean for h, cell in points.items() if h is not None and cell.mean is not None}
        size, width, order = (4.5, 2.4, 3) if row in MERGES else (3.5, 1.3, 2)
        style: Any = {"color": COLOURS.get(row), "marker": marker, "ms": size, "lw": width, "zorder": order}
        axes.plot(list(known), list(known.values()), label=_label(table, row), **style)
    axes.set(xlabel="edge homophily h", ylabel="test accuracy, %", xlim=(-0.02, 1.02))


def _curves(table: Table, figure: Figure) -> None:
    """Accuracy over the epochs, mean of the runs, for GCNs and GCN-SLs of growing depth."""
    names = {"train": "training", "val": "validation", "test": "test"}
    styles = dict(zip(map(str, DEPTHS), ("-", "--", ":"), strict=True))
    for axes, (part, title) in zip(figure.subplots(1, 3, sharey=True), names.items(), strict=True):
        for row in table.rows:
            good = table.cells[row, table.columns[0]].good
            runs = [result.history[part] for result in good if part in result.history]
            if runs:
                length = min(map(len, runs))
                curve = 100 * np.mean([run[:length] for run in runs], axis=0)
                method, _, depth = row.rpartition("-")
                label, epochs = _label(table, row), 1 + CURVE_STEP * np.arange(length)
                axes.plot(epochs, curve, styles[depth], color=COLOURS.get(method), label=label, linewidth=1.4)
        axes.set(title=title, xlabel="epoch")
    figure.axes[0].set_ylabel("accuracy, %")


def _beside_the_paper(table: Table, figure: Figure) -> None:
    """The differences of GCN-SL's accuracies to the paper's, whose standard deviation is a bar around zero."""
    rows = [row for row in MERGES if row in table.rows]
    columns = [c for c in table.columns if any(table.cells[row, c].difference is not None for row in rows)]
    if not columns:
        return
    axes = figure.add_subplot()
    axes.use_sticky_edges = False
    axes.axhline(0, color="#8a8f98", linewidth=1.5)
    labels = ["the paper's mean ± deviation", None]
    for row, place, label in zip(rows, _places(axes, columns, len(rows), 0.3), labels, strict=False):
        cells = [table.cells[row, column] for column in columns]
        theirs = _array(cell.paper and (cell.paper.std or 0.0) for cell in cells)
        axes.bar(place, 2 * theirs, 0.24, bottom=-theirs, color="#8a8f98", alpha=0.35, label=label)
        ours, stds = _array(cell.difference for cell in cells), [cell.std or 0.0 for cell in cells]
        axes.errorbar(place, ours, stds, fmt="o", color=COLOURS[row], label=_label(table, row), capsize=3, ms=5)
    axes.set_ylabel("test accuracy less the paper's, points")


def _bars(table: Table, axes: Axes, colours: Mapping[str, str], labels: Mapping[str, str] | None = None) -> None:
    """Bars side by side for each graph, in the order of the colours, for those of the rows that the table has."""
    rows = [row for row in colours if row in table.rows]
    width = 0.8 / len(rows)
    for row, place in zip(rows, _places(axes, table.columns, len(rows), width), strict=True):
        cells = [table.cells[row, column] for column in table.columns]
        style: Any = {"color": colours[row], "ecolor": _TEXT, "error_kw": {"elinewidth": 0.8}}
        style |= {"yerr": [cell.std or 0.0 for cell in cells], "label": labels[row] if labels else _label(table, row)}
        axes.bar(place, _array(cell.mean for cell in cells), 0.9 * width, **style)
    axes.set_ylabel("test accuracy, %")


def _homophily(table: Table, figure: Figure) -> None:
    axes, (grey, blue, _, red) = figure.add_subplot(), _SERIES
    colours = {"original": grey, "initial A*": blue, "nlgnn": COLOURS["nlgnn"], "gcn-sl-cc A*": red}
    _bars(table, axes, colours | {"gcn-sl-cc A*, featured": "#f0b39f"})
    axes.set(ylabel="edge homophily h", ylim=(0, 1))


def _ablation(table: Table, figure: Figure) -> None:
    """The accuracies themselves: differences to the model with neither graph would hide how useful it is."""
    methods = [method for method in MERGES if any(row.startswith(method) for row in table.rows)]
    figure.set_figheight(2.8 * len(methods))
    for axes, method in zip(figure.subplots(len(methods), squeeze=False).flat, methods, strict=True):
        rows = {f"{method} {variant}": variant.replace("+", " and ") for variant in ("neither", "A", "A*", "A+A*")}
        _bars(table, axes, dict(zip(rows, _SERIES, strict=True)), rows)
        axes.set_title(_label(table, method))


def _spectral(table: Table, figure: Figure) -> None:
    shades = {"without": {"gcn-sl-cc": "#f0b39f", "gcn-sl-av": "#f6d7a3"}, "with": COLOURS}
    colours = {f"{method} {kind} F": shades[kind][method] for method in MERGES for kind in shades}
    _bars(table, figure.add_subplot(), colours)


def _runtime(table: Table, figure: Figure) -> None:
    """Seconds on a logarithmic axis, ours filled and the paper's hollow."""
    axes = figure.add_subplot()
    colours = ("#3b82c4", "#2a9d76", "#e0572f")
    for row, colour, place in zip(table.rows, colours, _places(axes, table.columns, 3, 0.22), strict=False):
        cells = [table.cells[row, column] for column in table.columns]
        printed = _array(cell.paper and cell.paper.mean for cell in cells)
        axes.plot(place, _array(cell.mean for cell in cells), "o", color=colour, label=_label(table, row), ms=6)
        axes.plot(place, printed, "o", color=colour, markerfacecolor="none", ms=6)
    axes.plot([], [], "o", color="#8a8f98", markerfacecolor="none", label="the paper's")
    axes.set(yscale="log", ylabel="seconds")


def _beyond(table: Table, figure: Figure) -> None:
    """All methods on each graph, a dot each; the best is named, and those that the text speaks of have colours."""
    figure.set_figheight(1 + 0.3 * len(table.columns))
    axes, places = figure.add_subplot(), np.arange(len(table.columns))
    named = {PLAIN: COLOURS[PLAIN], TWINS: "#2a9d76", WHOLE: "#e0572f"}
    rows = sorted((row for row in table.rows if row not in PARTS), key=lambda row: row in named)  # colours on top
    means = _array([table.cells[row, column].mean for column in table.columns] for row in rows)
    for row, numbers in zip(rows, means, strict=True):
        style: Any = {"color": named[row], "ms": 6, "label": _label(table, row)} if row in named else {"ms": 4}
        axes.plot(numbers, places, "o", **({"color": "#8a8f98", "alpha": 0.6} | style))
    for place, numbers in zip(places, means.T, strict=True):
        if not np.isnan(numbers).all():
            best, text = np.nanmax(numbers), _label(table, rows[np.nanargmax(numbers)])
            axes.annotate(text, (best, place), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set(xlabel="test accuracy or ROC-AUC, %", ylim=(len(places) - 0.5, -0.5))  # the first on top
    axes.set_yticks(places, [column_label(column) for column in table.columns])
    axes.margins(x=0.12)  # for the names


def _array(numbers: Iterable[Any]) -> NDArray[Any]:
    """The numbers, NaN where there is none."""
    return np.array(list(numbers), dtype=float)


def _places(axes: Axes, columns: Sequence[str], count: int, width: float) -> list[NDArray[Any]]:
    """Name the graphs below the axis, and return where each of so many rows has its marks, side by side."""
    axes.set_xticks(range(len(columns)), [column_label(column).replace(" (", "\n(") for column in columns])
    return [np.arange(len(columns)) + width * (number - (count - 1) / 2) for number in range(count)]


def _label(table: Table, row: str) -> str:
    """The name of a row with its subscript in mathtext."""
    return re.sub(r"_(\w+)", r"$_{\1}$", table.row_label(row))


_ABOVE: Any = {"loc": "outside upper right", "ncols": 4}
_PAINTERS: Mapping[str, tuple[Callable[[Table, Figure], None], tuple[float, float], Any]] = {
    "accuracy": (_beside_the_paper, (8.4, 3.6), _ABOVE | {"ncols": 3}),
    "ablation": (_ablation, (8.4, 2.8), _ABOVE),
    "spectral": (_spectral, (8.4, 3.2), _ABOVE | {"ncols": 2}),
    "homophily": (_homophily, (8.4, 3.4), _ABOVE),
    "depth": (_curves, (9, 3.2), {"loc": "outside lower center", "ncols": 3}),
    "runtime": (_runtime, (8.4, 3.4), _ABOVE),
    "beyond": (_beyond, (8.4, 4.6), _ABOVE),
    "synthetic": (_over_homophily, (7.2, 4.2), {"loc": "outside right upper"}),
}
"""How to paint each experiment, the size in inches, and where the legend is."""
