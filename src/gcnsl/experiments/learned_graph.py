"""How much the nodes agree that a model has connected."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gcnsl.graph import UNLABELLED
from gcnsl.nn import GCNSL, Input
from gcnsl.reconnection import reconnected_edges

_ROWS = 256
"""Rows of A* that are listed at a time: before training it may be full."""


class Agreement(NamedTuple):
    """Of a learned graph, loops not counted."""

    homophily: float | None
    """Share of the edges between labelled nodes whose ends are of one class; None where there are no such edges."""
    degree: float
    """Mean number of neighbours."""


def learned_agreement(model: nn.Module, inputs: tuple[Input, ...], y: Tensor) -> Agreement | None:
    """Measure the graph that a model has learned, or ``None`` if it learns none.

    Args:
        model: GCN-SL, or one with a method ``reconnected_graph(*inputs)`` that gives edges (2 × E) and weights (E).
        inputs: What the model reads, on its device.
        y: Classes (n), -1 for unknown.
    """
    blocks = _edges(model, inputs)
    if blocks is None:
        return None
    labels = y.to(next(model.parameters()).device)
    edges = counted = agreeing = 0
    for source, target in blocks:
        other = source != target
        from_class, to_class = labels[source[other]], labels[target[other]]
        labelled = (from_class != UNLABELLED) & (to_class != UNLABELLED)
        edges += len(labelled)
        counted += int(labelled.sum())
        agreeing += int((labelled & (from_class == to_class)).sum())
    return Agreement(agreeing / counted if counted else None, edges / len(y))


def _edges(model: nn.Module, inputs: tuple[Input, ...]) -> Iterator[Tensor] | None:
    """The learned edges, both directions of each, in parts."""
    if isinstance(model, GCNSL):
        return _reconnected_rows(model, inputs[0]) if model.use_reconnected else None
    learned = getattr(model, "reconnected_graph", None)
    return None if learned is None else iter(learned(*inputs)[:1])


@torch.no_grad()
def _reconnected_rows(model: GCNSL, x: Input) -> Iterator[Tensor]:
    z = model.directions(x)
    for first, rows in enumerate(torch.split(z, _ROWS)):
        (source, target), _ = reconnected_edges(rows, model.epsilon, keys=z)
        yield torch.stack([source + first * _ROWS, target])
