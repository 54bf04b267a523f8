"""The given and the learned graph in numbers: edges, and how often they join nodes of the same class."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.estimator import NodeClassifier
from gcnsl.graph import edge_homophily
from gcnsl.sparse import Matrix

CROWDED = 0.1
"""A learned graph that joins a larger share of all pairs than this tells little."""

_ROWS = 256
"""Rows of the learned graph that are listed at a time: before training it may join all pairs."""
_ALL_ROWS, _SAMPLES, _SAMPLED_ROWS = 1 << 15, 16, 32
"""In a graph with more nodes than the first number, so many samples of so many rows are measured instead of all."""


class Agreement(NamedTuple):
    """Of a learned graph, loops not counted."""

    homophily: float | None
    """Share of the edges between labelled nodes whose ends are of one class; None if there are no such edges."""
    degree: float
    """Mean number of neighbours."""


def learned_agreement(
    model: Any, inputs: tuple[Matrix, ...], y: Tensor, *, among: Tensor | None = None
) -> Agreement | None:
    """Measure the graph that a model has learned, or return ``None`` if it learns none.

    Of a large graph (more than 32,768 nodes), the edges of 512 nodes are measured, since listing all takes too long.

    Args:
        model: If its attribute ``learns_graph`` is true, ``learned_graph(*inputs, rows=...)`` gives some rows' edges
            (2 × E) and weights (E).
        inputs: What the model reads, on its device.
        y: Classes (n), -1 for unknown.
        among: Measure the part of the graph that joins these nodes (n, boolean); ``None`` for all.
    """
    if not getattr(model, "learns_graph", False):
        return None
    device = next(model.parameters()).device
    labels = y.to(device)
    chosen = torch.ones_like(labels, dtype=torch.bool) if among is None else among.to(device)
    edges = counted = agreeing = nodes = 0
    for rows in _slices(len(y)):
        (source, target), _ = model.learned_graph(*inputs, rows=rows)
        kept = (source != target) & chosen[source] & chosen[target]
        from_class, to_class = labels[source[kept]], labels[target[kept]]
        labelled = (from_class != UNLABELLED) & (to_class != UNLABELLED)
        edges += len(labelled)
        counted += int(labelled.sum())
        agreeing += int((labelled & (from_class == to_class)).sum())
        nodes += int(chosen[rows].sum())
    return Agreement(agreeing / counted if counted else None, edges / max(1, nodes))


def _slices(n: int) -> list[slice]:
    """The rows that are measured, part by part."""
    if n <= _ALL_ROWS:
        return [slice(first, first + _ROWS) for first in range(0, n, _ROWS)]
    return [slice(first, first + _SAMPLED_ROWS) for first in range(0, n - _SAMPLED_ROWS, n // _SAMPLES)][:_SAMPLES]


@dataclass(frozen=True)
class GraphFacts:
    """Number of undirected edges, edge homophily as far as labels are known, and share of all pairs that are joined.

    ``chance`` is the homophily of random pairs: that two nodes are of one class.
    """

    edges: int
    homophily: float | None
    density: float
    chance: float

    @property
    def doubt(self) -> str:
        """Why this can't help as a learned graph, in words; empty if nothing speaks against it."""
        if not self.edges:
            return "it is empty: a smaller epsilon joins more nodes"
        if self.density > CROWDED:
            return f"{self.density:.0%} of all pairs, so it tells little: a larger epsilon joins fewer nodes"
        if self.homophily is not None and self.homophily <= self.chance:
            return f"no more than by chance, {self.chance:.2f}: the method may do as well without it"
        return ""


def graph_facts(classifier: NodeClassifier, data: Data) -> tuple[GraphFacts, GraphFacts | None]:
    """The graph that a classifier was trained on, with all its labels, and the one that it has learned, if it has."""
    n, edges, homophily = data.num_nodes, data.edge_report.edges, edge_homophily(data.edge_index, data.y)
    pairs = max(1, n * (n - 1) // 2)
    shares = torch.bincount(data.y[data.y != UNLABELLED]) / (data.y != UNLABELLED).sum()
    chance = float(shares.square().sum())
    given = GraphFacts(edges, None if math.isnan(homophily) else homophily, edges / pairs, chance)
    learned = learned_agreement(classifier.model_, classifier.fitted_.prepared.inputs, data.y)
    if learned is None:
        return given, None
    joined = round(learned.degree * n / 2)
    return given, GraphFacts(joined, learned.homophily, joined / pairs, chance)
