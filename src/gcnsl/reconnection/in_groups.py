"""`reconnect` for graphs of any size: rows of a large graph are compared in groups of likely similar rows.

Comparing all pairs takes time that grows with n². In groups the time grows with n, and the average over the similar
rows of a group estimates the average over all similar rows. Each row is in its own group, so that loops are never lost.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from gcnsl.reconnection import dense
from gcnsl.reconnection.arguments import computed_in, threshold_of
from gcnsl.reconnection.groups import GroupSize, draw_groups
from gcnsl.reconnection.operator import reconnect
from gcnsl.reconnection.pairs import PairMemory, Pairs, Regime
from gcnsl.reconnection.problem import Problem

EXACT_NODES, EXACT_NODES_ON_GPU = 1 << 15, 1 << 16
"""Up to this many nodes, all pairs are compared: that takes less time than the other parts of an epoch."""
IN_TRAINING, IN_EVALUATION = GroupSize(most=1 << 10, enough=32), GroupSize(most=1 << 12, enough=64)
"""The groups of larger graphs: large enough to lose little accuracy (``bench/groups.py``), and so small that A* takes
less time than the other parts of an epoch."""
DENSE_ENTRIES = 1 << 26
"""The number of similarities that a GPU holds at a time."""


def reconnect_at_any_size(
    z: Tensor,
    h: Tensor,
    epsilon: float | Tensor,
    *,
    training: bool,
    loops: bool = True,
    memory: PairMemory | None = None,
) -> Tensor:
    """Average h over the reconnected graph, or over a part of it if the graph is large.

    Up to 32,768 nodes, on a GPU up to 65,536, this is :func:`gcnsl.reconnect`. Beyond, the part is drawn anew by
    torch's generator in every training step. In evaluation, a larger part is used, which depends on z and ε alone.

    Args:
        z: Rows of norm 1, or zero (n × q).
        h: What is averaged (n × p).
        epsilon: The smallest similarity that is kept.
        training: Whether this is a training step.
        loops, memory: As for :func:`gcnsl.reconnect`.
    """
    if len(z) <= (EXACT_NODES if z.device.type == "cpu" else EXACT_NODES_ON_GPU):
        return reconnect(z, h, epsilon, loops=loops, memory=memory)
    size, seed = (IN_TRAINING, int(torch.randint(2**62, ()))) if training else (IN_EVALUATION, 0)
    return reconnect_in_groups(z, h, epsilon, loops=loops, size=size, seed=seed)


def reconnect_in_groups(
    z: Tensor, h: Tensor, epsilon: float | Tensor, *, loops: bool, size: GroupSize, seed: int
) -> Tensor:
    """Average h (n × p) over those pairs of the reconnected graph that are in one group (:func:`draw_groups`).

    Rows and averages are put in the order of the groups, where the rows that are visited together lie side by side.
    """
    searched = z.detach().to(computed_in(z.dtype))
    groups = draw_groups(searched, threshold_of(epsilon, z.dtype), size, seed=seed)
    rows = groups.flatten()
    places = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))[: len(z)]
    grouped_z, grouped_h = (_taken(values, rows, places) for values in (z, h))
    averages = _average_groups(grouped_z, grouped_h, epsilon, loops=loops, width=groups.shape[1])
    return _taken(averages, places, rows)


def _average_groups(z: Tensor, h: Tensor, epsilon: float | Tensor, *, loops: bool, width: int) -> Tensor:
    """Average h over the similar rows in each group of ``width`` consecutive rows."""
    if z.device.type != "cpu":
        return average_dense_groups(z, h, epsilon, loops=loops, width=width)
    from gcnsl.reconnection.numba_pairs import Searched  # here, because numba takes long to load
    from gcnsl.reconnection.numba_search import UNLIMITED

    threshold, memory = threshold_of(float(epsilon), z.dtype), PairMemory()
    searched = z.detach().to(computed_in(z.dtype))
    listed = Searched.of(searched, searched, threshold, loops=loops).listed(UNLIMITED, span=width)
    assert listed is not None
    pairs = Pairs(torch.from_numpy(listed.start), torch.from_numpy(listed.columns), torch.tensor(int(Regime.LISTED)))
    memory.keep(searched, threshold, pairs, loops=loops)  # so that the call below does not search
    return reconnect(z, h, epsilon, loops=loops, backend="numba", memory=memory)


def average_dense_groups(z: Tensor, h: Tensor, epsilon: float | Tensor, *, loops: bool, width: int) -> Tensor:
    """Average h over the similar rows in each group, from a matrix of all similarities in the group.

    The matrices of a few groups are made at a time, and made again in the backward pass. This suits a GPU, for which
    many small products are one operation.
    """
    threshold = threshold_of(epsilon, z.dtype)

    def average(rows: Tensor, values: Tensor) -> Tensor:
        rows, averaged = (part.to(computed_in(part.dtype)) for part in (rows, values))
        problem = Problem(rows, rows, averaged, threshold, first_key=0, loops=loops)
        return dense.forward(problem).out.to(values.dtype)

    at_a_time = max(1, DENSE_ENTRIES // width**2)
    parts = zip(*(torch.split(rows.view(-1, width, rows.shape[1]), at_a_time) for rows in (z, h)), strict=True)
    averages = [checkpoint(average, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    return torch.cat(averages).view(h.shape)


def _taken(values: Tensor, rows: Tensor, back: Tensor) -> Tensor:
    """The given rows, 0 for those that do not exist. ``back`` has the place of every row of values in the result."""
    taken: Tensor = _Taken.apply(values, rows, back)  # type: ignore[no-untyped-call]
    return taken


class _Taken(torch.autograd.Function):
    """torch's own derivative would add up rows, because it does not know that each is taken once."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return _take(values, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _take(grads[0], ctx.back), None, None


def _take(values: Tensor, rows: Tensor) -> Tensor:
    taken = values.index_select(0, rows.clamp(max=len(values) - 1))
    taken[rows >= len(values)] = 0
    return taken
