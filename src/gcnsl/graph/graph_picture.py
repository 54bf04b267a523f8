"""Draws the degrees and classes of a graph, and how often each class is linked to each."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch_geometric.data import Data

from gcnsl.graph.homophily import class_compatibility
from gcnsl.graph.summary import GraphSummary, neighbour_counts
from gcnsl.pictures import check_picture, save_picture, text_style

_INK, _FILL = "#1f3b57", "#4c8dae"


def draw_graph(data: Data, summary: GraphSummary, path: str | Path) -> Path:
    """Write the picture in the format that the ending of the path names, and return the path."""
    path = check_picture(path)
    with mpl.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False} | text_style()):
        figure = Figure(figsize=(13.5, 4.4), layout="constrained", dpi=120)
        degrees, classes, compatibility = figure.subplots(1, 3)
        _draw_degrees(degrees, neighbour_counts(data))
        sizes = {**summary.classes, **({"(unlabelled)": summary.unlabelled} if summary.unlabelled else {})}
        bars = classes.barh(list(sizes), list(sizes.values()), color=_FILL)
        classes.bar_label(bars, padding=3, fontsize=8, color=_INK)
        classes.invert_yaxis()
        classes.set(title="Classes", xlabel="nodes")
        classes.margins(x=0.12)
        _draw_compatibility(compatibility, data, list(summary.classes))
        edge = summary.homophily["edge"]
        agreement = "" if edge is None else f", edge homophily {edge:.2f}"
        if edge is not None and summary.labelled_edges < summary.edges - summary.loops:
            agreement += f" (over {summary.labelled_edges:,} edges between labelled nodes)"
        figure.suptitle(f"{summary.name}: {summary.nodes:,} nodes, {summary.edges:,} edges{agreement}", weight="bold")
        return save_picture(figure, path)


def _draw_degrees(axes: Axes, degree: np.ndarray) -> None:
    """Draw the share of nodes with at least k neighbours. A straight line means a heavy tail."""
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    axes.set(title="Neighbours", xlabel="number of neighbours k", ylabel="share of nodes with at least k")
    if len(values):
        axes.loglog(values, counts[::-1].cumsum()[::-1] / len(degree), "o-", color=_FILL, markersize=3, linewidth=1)
        axes.grid(visible=True, which="major", alpha=0.3)
        for axis in (axes.xaxis, axes.yaxis):  # by default, powers of ten are formulas
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")


def _draw_compatibility(axes: Axes, data: Data, names: list[str]) -> None:
    axes.set_title("Neighbours' classes (each row sums to 1)")
    if not names:
        axes.text(0.5, 0.5, "no labels", ha="center", transform=axes.transAxes)
        return
    shares = class_compatibility(data.edge_index, data.y, len(names)).numpy()
    image = axes.imshow(shares, cmap="viridis", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="class of its neighbours", ylabel="class of a node")
    if len(names) <= 10:
        for (row, column), share in np.ndenumerate(shares):
            ink = "w" if share < 0.6 else "k"
            axes.text(column, row, f"{share:.2f}", ha="center", va="center", fontsize=7, color=ink)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
