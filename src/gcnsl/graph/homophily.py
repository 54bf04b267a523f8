"""Homophily: how often neighbours have the same class.

All functions take the edges of a checked graph (both directions of an edge, loops once; see
:mod:`gcnsl.graph.simple_edges`), except :func:`arc_homophily`, which takes its arcs (:mod:`gcnsl.graph.arcs`). Edges
with an unlabelled end and loops are ignored: no node is its own neighbour. Homophilies are NaN for a graph without
edges between labelled nodes.
"""

import math

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED


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
