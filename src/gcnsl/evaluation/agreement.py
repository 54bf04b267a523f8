"""How often nodes that a learned graph joins are of the same class."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED
from gcnsl.sparse import Matrix

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
