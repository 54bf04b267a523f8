"""Summarizes a graph: what to know before training on it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.graph.column_report import ColumnSummary, summarize_columns
from gcnsl.graph.homophily import (
    adjusted_homophily,
    arc_homophily,
    edge_homophily,
    labelled_edges,
    node_homophily,
)
from gcnsl.graph.masks import PARTS, split_count, untrained_classes

LEAKAGE_LIMIT = 0.1
"""Largest share of test nodes with a twin among the training nodes for which there is no warning."""


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
    split = {part: int(mask[:, 0].sum()) for part, mask in masks.items() if mask is not None}
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
        "homophily": {name: _or_none(measure(data.edge_index, y)) for name, measure in measures.items()},
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
        "arc_homophily": {name: _or_none(value) for name, value in arc_homophily(arcs, y).items()},
        "weights": weights,
    }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


def neighbour_counts(data: Data) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the number of neighbours per node (n), without loops."""
    source, target = data.edge_index
    return torch.bincount(source[source != target], minlength=data.num_nodes).numpy()


def _rows(x: Tensor) -> Iterator[bytes]:
    """Yield each row of features as bytes, which are equal exactly if the rows are; empty for a row of zeros."""
    if x.layout == torch.sparse_csr:
        start, columns, values = (part.numpy() for part in (x.crow_indices(), x.col_indices(), x.values()))
        for low, high in pairwise(start):
            kept = low + np.flatnonzero(values[low:high])
            order = kept[np.argsort(columns[kept])]
            yield columns[order].tobytes() + values[order].tobytes()
    else:
        zero = bytes(x.shape[1] * x.element_size())
        for row in x.numpy() + 0.0:  # turns -0.0 into 0.0, which has other bytes
            content = row.tobytes()
            yield content if content != zero else b""


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
    leaked = 0
    for trained, tested in zip(train.T, test.T, strict=True):
        leaked += int(torch.isin(twins[tested], twins[trained & (twins >= 0)]).sum())
    return leaked / int(test.sum())


def _warnings(facts: dict[str, Any], data: Data, y: Tensor, class_names: list[str]) -> Iterator[str]:
    yield from data.get("notes") or []
    if facts["edges"] == 0:
        yield "The graph has no edges: only the learned graph can connect nodes"
    if facts["features"] == 0:
        yield "The nodes have no features: structural ones are made for training"
    if facts["isolated_nodes"]:
        yield f"{facts['isolated_nodes']} node(s) have no neighbours"
    if facts["zero_feature_rows"]:
        yield f"All features of {facts['zero_feature_rows']} node(s) are zero"
    sizes = [size for size in facts["classes"].values() if size]
    if sizes and min(sizes) < 5:
        rare = min(facts["classes"], key=lambda name: facts["classes"][name] or data.num_nodes)
        yield f"Class {rare!r} has only {min(sizes)} node(s): its accuracy will be mostly noise"
    if facts["leakage"] is not None and facts["leakage"] > LEAKAGE_LIMIT:
        yield (
            f"{facts['leakage']:.0%} of the test nodes have a twin (same label, same neighbours) among the training "
            "nodes: accuracies will be optimistic"
        )
    if data.get("train_mask") is not None:
        for sentence in untrained_classes(data.train_mask, y, class_names):
            yield sentence[0].upper() + sentence[1:]
