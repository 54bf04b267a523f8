"""`reconnect` for graphs of any size: on a CPU, rows of a large graph are compared in groups of likely similar rows.

Comparing all pairs takes time that grows with n². In groups the time grows with n, and the average over the similar
rows of a group estimates the average over all similar rows. Each row is in its own group, so that loops are never lost.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnsl.reconnection.arguments import computed_in, threshold_of
from gcnsl.reconnection.groups import GroupSize, draw_groups
from gcnsl.reconnection.operator import reconnect
from gcnsl.reconnection.pairs import PairMemory, Pairs, Regime

EXACT_NODES = 1 << 15
"""Up to this many nodes, all pairs are compared."""
IN_TRAINING, IN_EVALUATION = GroupSize(most=1 << 10, enough=32), GroupSize(most=1 << 12, enough=64)
"""The groups of larger graphs: large enough to lose little accuracy (``bench/groups.py``), and so small that A* takes
less time than the other parts of an epoch."""


def reconnect_at_any_size(
    z: Tensor, h: Tensor, epsilon: float, *, training: bool, loops: bool = True, memory: PairMemory | None = None
) -> Tensor:
    """Average h over the reconnected graph, or over a part of it if the graph is large and on a CPU.

    Up to 32,768 nodes, and on a GPU, this is :func:`gcnsl.reconnect`. Beyond, the part is drawn anew by torch's
    generator in every training step. In evaluation, a larger part is used, which depends on z and ε alone.

    Args:
        z: Rows of norm 1, or zero (n × q).
        h: What is averaged (n × p).
        epsilon: The smallest similarity that is kept.
        training: Whether this is a training step.
        loops, memory: As for :func:`gcnsl.reconnect`.
    """
    if len(z) <= EXACT_NODES or z.device.type != "cpu":
        return reconnect(z, h, epsilon, loops=loops, memory=memory)
    if training:
        return reconnect_in_groups(z, h, epsilon, loops=loops, size=IN_TRAINING, seed=int(torch.randint(2**62, ())))
    return reconnect_in_groups(z, h, epsilon, loops=loops, size=IN_EVALUATION, seed=0)


def reconnect_in_groups(z: Tensor, h: Tensor, epsilon: float, *, loops: bool, size: GroupSize, seed: int) -> Tensor:
    """Average h (n × p) over those pairs of the reconnected graph that are in one group (:func:`draw_groups`).

    Rows and averages are put in the order of the groups, where the rows that are visited together lie side by side.
    """
    from gcnsl.reconnection.numba_pairs import Searched  # here, because numba takes long to load
    from gcnsl.reconnection.numba_search import UNLIMITED

    threshold = threshold_of(epsilon, z.dtype)
    groups = draw_groups(z.detach().to(computed_in(z.dtype)).numpy(), threshold, size, seed=seed)
    rows = torch.from_numpy(groups.ravel())
    places = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows)))[: len(z)]
    grouped_z, grouped_h = (_taken(values, rows, places) for values in (z, h))
    memory = PairMemory()
    searched = grouped_z.detach().to(computed_in(z.dtype))
    listed = Searched.of(searched, searched, threshold).listed(UNLIMITED, span=groups.shape[1])
    assert listed is not None
    pairs = Pairs(torch.from_numpy(listed.start), torch.from_numpy(listed.columns), torch.tensor(int(Regime.LISTED)))
    memory.keep(searched, threshold, pairs)
    averages = reconnect(grouped_z, grouped_h, epsilon, loops=loops, backend="numba", memory=memory)
    return _taken(averages, places, rows)


def _taken(values: Tensor, rows: Tensor, back: Tensor) -> Tensor:
    """The given rows; those that do not exist are 0. ``back`` are the rows of the result that restore the values."""
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
