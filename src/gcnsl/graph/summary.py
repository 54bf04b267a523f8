"""What to know of a graph before training on it: its homophily, a summary with warnings, and a picture.

Homophily is how often neighbours have the same class. All functions take the edges of a checked graph (both directions
of an edge, loops once; see :mod:`gcnsl.graph.edges`), except :func:`arc_homophily`, which takes its arcs. Edges with an
unlabelled end and loops are ignored: no node is its own neighbour. Homophilies are NaN for a graph without edges
between labelled nodes.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.graph.column_report import ColumnSummary, summarize_columns, telling_columns
from gcnsl.graph.masks import PARTS, by_run, split_count, untrained_classes
from gcnsl.pictures import check_picture, save_picture, text_style
from gcnsl.sparse import to_scipy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAKAGE_LIMIT = 0.1
"""Largest share of test nodes with a twin among the training nodes for which there is no warning."""
FEWEST = 5
"""Of a class with fewer nodes, accuracies are mostly noise."""
_INK, _FILL = "#1f3b57", "#4c8dae"


def edge_homophily(edge_index: Tensor, y: Tensor, *, loops: bool = False) -> float:
    """Share of the undirected edges whose ends have the same class.

    ``h = |{(u, v) ∈ E : y_u = y_v}| / |E|``

    With ``loops``, a loop counts as an edge between nodes of one class, as in the paper's table of datasets.
    """
    source, target = labelled_edges(edge_index, y, loops=loops)
    once = source <= target
    return float((y[source[once]] == y[target[once]]).double().mean())


def node_homophily(edge_index: Tensor, y: Tensor) -> float:
    """Share of a node's labelled neighbours that have the node's class, averaged over the nodes that have any.

    ``(1 / |V|) Σ_v |{u ∈ N(v) : y_u = y_v}| / |N(v)|``
    """
    source, target = labelled_edges(edge_index, y)
    degree = torch.bincount(source, minlength=len(y))
    agreeing = torch.bincount(source[y[source] == y[target]], minlength=len(y))
    counted = degree > 0
    return float((agreeing[counted] / degree[counted]).double().mean())


def adjusted_homophily(edge_index: Tensor, y: Tensor) -> float:
    """Edge homophily corrected for chance: about 0 for random edges, 1 if all neighbours have the same class.

    (h − Σ_k p_k²) / (1 − Σ_k p_k²), where p_k is the share of edge ends in class k (Platonov et al., 2023)
    """
    ends = y[labelled_edges(edge_index, y)[0]]
    share = torch.bincount(ends).double() / len(ends)
    chance = float((share**2).sum())
    return (edge_homophily(edge_index, y) - chance) / (1 - chance) if chance < 1 else math.nan


def arc_homophily(arc_index: Tensor, y: Tensor) -> dict[str, float]:
    """Homophily of a directed graph, whose arcs (2 × E') lead from the first to the second row.

    ``arc`` is the share of the arcs that lead to a node of the same class. ``out`` and ``in`` are node homophilies over
    the nodes that a node points to and over those that point to it.
    """
    source, target = labelled_edges(arc_index, y)
    return {
        "arc": float((y[source] == y[target]).double().mean()),
        "out": node_homophily(arc_index, y),
        "in": node_homophily(arc_index.flip(0), y),
    }


def class_compatibility(edge_index: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """Return the shares of the classes among the neighbours of each class (C × C).

    Row c sums to 1, or to 0 if no node of class c has a labelled neighbour.
    """
    source, target = y[labelled_edges(edge_index, y)]
    pairs = torch.bincount(source * num_classes + target, minlength=num_classes**2)
    counts = pairs.reshape(num_classes, num_classes).double()
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def labelled_edges(edge_index: Tensor, y: Tensor, *, loops: bool = False) -> Tensor:
    """Return the edges between two labelled nodes; with ``loops``, those that join a labelled node to itself, too."""
    source, target = edge_index
    labelled = (y[source] != UNLABELLED) & (y[target] != UNLABELLED)
    return edge_index[:, labelled if loops else labelled & (source != target)]


@dataclass(frozen=True)
class GraphSummary:
    """Size, degrees, homophily and warnings, in values that JSON can hold."""

    name: str
    nodes: int
    edges: int
    """Undirected edges, including loops."""
    loops: int
    repeated_entries: int
    """Entries of the raw edge list that repeat an earlier one."""
    one_way_edges: int
    """Edges that the raw edge list contains in one direction only."""
    arcs: int | None
    """Edges with their directions, including loops; ``None`` for an undirected graph."""
    reciprocity: float | None
    """Share of the arcs, without loops, whose reverse is an arc too; ``None`` without directions or arcs."""
    weights: dict[str, float]
    """``min``, ``mean`` and ``max`` of the weights, of the arcs if it is directed; empty without weights or edges."""
    features: int
    columns: tuple[ColumnSummary, ...]
    """The columns of the table of nodes; empty if the graph is from elsewhere."""
    classes: dict[str, int]
    """Number of nodes per class."""
    unlabelled: int
    counted_unknown: dict[str, int]
    """Number of nodes with each of the labels that count as unknown, such as ``NA``."""
    degree: dict[str, float]
    """``min``, ``median``, ``mean`` and ``max`` of the number of neighbours, without loops."""
    homophily: dict[str, float | None]
    """``edge``, ``node`` and ``adjusted`` homophily; ``None`` without edges between labelled nodes."""
    labelled_edges: int
    """Edges between two labelled nodes, without loops: those that homophilies are shares of."""
    arc_homophily: dict[str, float | None]
    """What :func:`gcnsl.graph.arc_homophily` returns; empty for an undirected graph."""
    isolated_nodes: int
    """Nodes without neighbours, not counting themselves."""
    zero_feature_rows: int
    repeated_feature_rows: int
    """Nodes with exactly the same features as another node; rows of zeros are not counted."""
    twins: int
    """Nodes with exactly the same label and neighbours (at least two) as another node."""
    split: dict[str, int]
    """``runs``, and the sizes of ``train``, ``val``, ``test``, ``left_out`` in the first run; empty without masks."""
    leakage: float | None
    """Share of the test nodes, over all runs, with a twin among the training nodes; ``None`` without masks."""
    warnings: tuple[str, ...]


def summarize(data: Data) -> GraphSummary:
    """Summarize a checked graph."""
    y = data.y if data.y is not None else torch.full((data.num_nodes,), UNLABELLED)
    names = [str(c) for c in data.get("class_names") or []]
    degree = neighbour_counts(data)
    twins = _twin_groups(data, degree, y)
    rows = Counter(_rows(data.x))
    measures = {"edge": edge_homophily, "node": node_homophily, "adjusted": adjusted_homophily}
    statistics: dict[str, Any] = {"min": np.min, "median": np.median, "mean": np.mean, "max": np.max}
    masks = {part: data.get(f"{part}_mask") for part in PARTS}
    split = {part: int(by_run(mask)[:, 0].sum()) for part, mask in masks.items() if mask is not None}
    if split:
        split = {"runs": split_count(data), **split, "left_out": data.num_nodes - sum(split.values())}
    facts: dict[str, Any] = {
        "name": data.get("name") or "graph",
        "nodes": data.num_nodes,
        "edges": data.edge_report.edges,
        "loops": data.edge_report.loops,
        "repeated_entries": data.edge_report.repeated,
        "one_way_edges": data.edge_report.one_way,
        "features": data.num_features,
        "columns": summarize_columns(data),
        "classes": {name: int((y == c).sum()) for c, name in enumerate(names)},
        "unlabelled": int((y == UNLABELLED).sum()),
        "counted_unknown": data.get("counted_unknown") or {},
        "degree": {name: float(statistic(degree)) for name, statistic in statistics.items()},
        "homophily": _without_nan({name: measure(data.edge_index, y) for name, measure in measures.items()}),
        "labelled_edges": labelled_edges(data.edge_index, y).shape[1] // 2,
        **_arc_facts(data, y),
        "isolated_nodes": int((degree == 0).sum()),
        "zero_feature_rows": rows[b""] if data.num_features else 0,
        "repeated_feature_rows": sum(count for row, count in rows.items() if row and count > 1),
        "twins": int((twins >= 0).sum()),
        "split": split,
        "leakage": _leakage(data, twins),
    }
    return GraphSummary(**facts, warnings=tuple(_warnings(facts, data, y, names)))


def _arc_facts(data: Data, y: Tensor) -> dict[str, Any]:
    """Return what is known of directions and weights."""
    weight, arcs, weights = data.get("arc_weight"), data.get("arc_index"), {}
    if weight is None and "edge_weight" in data:
        weight = data.edge_weight[data.edge_index[0] <= data.edge_index[1]]  # each edge once
    if weight is not None and len(weight):
        weights = {"min": float(weight.min()), "mean": float(weight.double().mean()), "max": float(weight.max())}
    if arcs is None:
        return {"arcs": None, "reciprocity": None, "arc_homophily": {}, "weights": weights}
    proper = arcs.shape[1] - data.edge_report.loops
    return {
        "arcs": arcs.shape[1],
        "reciprocity": (proper - data.edge_report.one_way) / proper if proper else None,
        "arc_homophily": _without_nan(arc_homophily(arcs, y)),
        "weights": weights,
    }


def _without_nan(shares: dict[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(share) else share for name, share in shares.items()}


def neighbour_counts(data: Data) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the number of neighbours per node (n), without loops."""
    source, target = data.edge_index
    return torch.bincount(source[source != target], minlength=data.num_nodes).numpy()


def _rows(x: Tensor) -> Iterator[bytes]:
    """Each row of features as bytes, which are equal exactly if the rows are; none for a row of zeros."""
    rows = to_scipy(x).copy()
    rows.eliminate_zeros()
    for low, high in pairwise(rows.indptr):
        yield rows.indices[low:high].tobytes() + rows.data[low:high].tobytes()


def _twin_groups(data: Data, degree: np.ndarray[Any, Any], y: Tensor) -> Tensor:
    """Number the groups of nodes that have the same label and the same neighbours, at least two; -1 for other nodes.

    A set of neighbours is identified by the sum of their random 64-bit numbers: two different sets have the same sum
    with probability 2⁻⁶⁴. One common neighbour is not enough, because all leaves of a star have the same one.
    """
    source, target = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    numbers = torch.from_numpy(np.random.default_rng(0).integers(-(2**63), 2**63, data.num_nodes))
    signature = torch.zeros(data.num_nodes, dtype=torch.long).index_add_(0, source, numbers[target])
    kinds = torch.stack([signature, y], dim=1)
    kinds[torch.from_numpy(degree < 2) | (y == UNLABELLED)] = -1
    _, group, size = torch.unique(kinds, dim=0, return_inverse=True, return_counts=True)
    return torch.where((size[group] > 1) & (kinds[:, 1] != UNLABELLED), group, -1)


def _leakage(data: Data, twins: Tensor) -> float | None:
    train, test = data.get("train_mask"), data.get("test_mask")
    if train is None or test is None or not test.any():
        return None
    runs = zip(by_run(train).T, by_run(test).T, strict=True)
    leaked = sum(int(torch.isin(twins[tested], twins[trained & (twins >= 0)]).sum()) for trained, tested in runs)
    return leaked / int(test.sum())


def harms(data: Data) -> Iterator[str]:
    """What in a graph with labels will hurt most: columns that tell the label, classes too rare to learn."""
    if data.y is None or not data.get("class_names"):
        return
    if "columns" in data and (found := telling_columns(data.columns, data.y.numpy())):
        shares = ", ".join(f"{name} {share:.0%}" for name, share in list(found.items())[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        yield f"Columns that tell the label by themselves ({shares}{more}): is one the label under another name?"
    sizes = torch.bincount(data.y[data.y != UNLABELLED], minlength=len(data.class_names)).tolist()
    rare = [str(name) for name, size in zip(data.class_names, sizes, strict=True) if 0 < size < FEWEST]
    if rare:
        some = ", ".join(rare[:5]) + (f" and {len(rare) - 5} more" if len(rare) > 5 else "")
        plural = "classes have" if len(rare) > 1 else "class has"
        yield f"{len(rare)} {plural} fewer than {FEWEST} nodes ({some}): their accuracy will be mostly noise"


def _warnings(facts: dict[str, Any], data: Data, y: Tensor, class_names: list[str]) -> Iterator[str]:
    yield from data.get("notes") or []
    yield from harms(data)
    if facts["edges"] == 0:
        yield "The graph has no edges: only the learned graph can connect nodes"
    if facts["features"] == 0:
        yield "The nodes have no features: structural ones are made for training"
    if facts["isolated_nodes"]:
        yield f"{facts['isolated_nodes']} node(s) have no neighbours"
    if facts["zero_feature_rows"]:
        yield f"All features of {facts['zero_feature_rows']} node(s) are zero"
    if facts["leakage"] is not None and facts["leakage"] > LEAKAGE_LIMIT:
        yield (
            f"{facts['leakage']:.0%} of the test nodes have a twin (same label, same neighbours) among the training "
            "nodes: accuracies will be optimistic"
        )
    if data.get("train_mask") is not None:
        for sentence in untrained_classes(data.train_mask, y, class_names):
            yield sentence[0].upper() + sentence[1:]


def draw_graph(data: Data, summary: GraphSummary, path: str | Path) -> Path:
    """Write the picture in the format that the ending of the path names, and return the path."""
    import matplotlib as mpl  # it takes long to load
    from matplotlib.figure import Figure

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


def _draw_degrees(axes: "Axes", degree: np.ndarray) -> None:
    """Draw the share of nodes with at least k neighbours. A straight line means a heavy tail."""
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    axes.set(title="Neighbours", xlabel="number of neighbours k", ylabel="share of nodes with at least k")
    if len(values):
        axes.loglog(values, counts[::-1].cumsum()[::-1] / len(degree), "o-", color=_FILL, markersize=3, linewidth=1)
        axes.grid(visible=True, which="major", alpha=0.3)
        for axis in (axes.xaxis, axes.yaxis):  # by default, powers of ten are formulas
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")


def _draw_compatibility(axes: "Axes", data: Data, names: list[str]) -> None:
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
