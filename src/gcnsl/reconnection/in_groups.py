"""`reconnect` for graphs of any size: rows of a large graph are compared in groups of likely similar rows.

Comparing all pairs takes time that grows with n². In groups the time grows with n, and the average over the similar
rows of a group estimates the average over all similar rows. Each row is in its own group, so that loops are never lost.

How a group is drawn depends on how many pairs of rows are similar at all. If many are, a random sample of the rows has
enough similar ones. If few are, rows are divided by direction, so that similar rows tend to be in one group.
"""

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from gcnsl.reconnection import dense
from gcnsl.reconnection.operator import reconnect
from gcnsl.reconnection.problem import WIDTH, PairMemory, Problem, Threshold, computed_in, threshold_of

SAMPLED_ROWS, SAMPLED_KEYS = 256, 1 << 13
"""The pairs of rows from which the share of similar pairs is estimated."""
SAMPLED_GROUPS = 64
"""The groups from which the number of similar rows in a group is estimated, with one row of each."""


class GroupSize(NamedTuple):
    """The largest number of rows of a group (at least 128), and how many similar ones per row are enough."""

    most: int
    enough: int


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
    """
    if not len(z):
        return h
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
    take: Any = _Taken.apply
    grouped_z, grouped_h = (take(values, rows, places) for values in (z, h))
    averages = _average_groups(grouped_z, grouped_h, epsilon, loops=loops, width=groups.shape[1])
    return cast(Tensor, take(averages, places, rows))


def _average_groups(z: Tensor, h: Tensor, epsilon: float | Tensor, *, loops: bool, width: int) -> Tensor:
    """Average h over the similar rows in each group of ``width`` consecutive rows."""
    if z.device.type != "cpu":
        return average_dense_groups(z, h, epsilon, loops=loops, width=width)
    from gcnsl.reconnection.numba_backend import UNLIMITED, Search  # here, because numba takes long to load

    searched, memory = z.detach().to(computed_in(z.dtype)), PairMemory()
    problem = Problem.of(searched, None, searched, threshold_of(float(epsilon), z.dtype), loops=loops)
    memory.keep(problem, Search.of(problem).listed(UNLIMITED, span=width))  # so that the call below does not search
    return reconnect(z, h, epsilon, loops=loops, backend="numba", memory=memory)


def average_dense_groups(z: Tensor, h: Tensor, epsilon: float | Tensor, *, loops: bool, width: int) -> Tensor:
    """Average h over the similar rows in each group, from a matrix of all similarities in the group.

    The matrices of a few groups are made at a time, and made again in the backward pass. This suits a GPU, for which
    many small products are one operation.
    """
    threshold = threshold_of(epsilon, z.dtype)

    def average(rows: Tensor, values: Tensor) -> Tensor:
        rows, averaged = (part.to(computed_in(part.dtype)) for part in (rows, values))
        return dense.forward(Problem(rows, rows, averaged, threshold, loops=loops)).out.to(values.dtype)

    at_a_time = max(1, DENSE_ENTRIES // width**2)
    parts = zip(*(torch.split(rows.view(-1, width, rows.shape[1]), at_a_time) for rows in (z, h)), strict=True)
    averages = [checkpoint(average, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    return torch.cat(averages).view(h.shape)


def draw_groups(z: Tensor, threshold: Threshold, size: GroupSize, *, seed: int) -> Tensor:
    """Divide the rows of z into groups in which a row finds ``size.enough`` similar rows on average, if possible.

    If random groups of ``size.most`` rows would hold more, they are made smaller. If they would hold fewer, rows are
    split by direction, as often as the number of similar rows has to double. Where directions form clusters, a group
    can then hold far more than enough, and is divided at random.

    Returns the row numbers of each group (groups × rows, a multiple of 128), on the device of z. Numbers from n on fill
    up the groups and stand for no row.
    """
    generator = torch.Generator(z.device).manual_seed(seed)
    rows, keys = (z[_integers(len(z), (number,), generator)] for number in (SAMPLED_ROWS, SAMPLED_KEYS))
    share = float((rows @ keys.T >= threshold).float().mean())
    if share * size.most >= size.enough:
        return split_groups(z, max(WIDTH, int(size.enough / share)), 0, generator)
    wanted = math.inf if share == 0 else math.ceil(math.log2(size.enough / (share * size.most)))
    return _thinned(split_groups(z, size.most, wanted, generator), z, threshold, size.enough, generator)


def split_groups(z: Tensor, most: int, splits: float, generator: torch.Generator) -> Tensor:
    """Divide the rows of z (n × q) into groups, at random first and then by direction.

    A group has at most ``most`` rows, rounded up to a multiple of :data:`WIDTH`.
    The rows are dealt at random into cells, and each cell is halved ``splits`` times, or as often as that is possible.
    To halve a cell, two of its rows are drawn, and the cell is divided at the median of z·(z_a − z_b). This is a random
    projection tree (Dasgupta and Freund, 2008).
    """
    n = len(z)
    halvings = max(0, math.ceil(math.log2(n / most)))
    rows_per_group = WIDTH * -(-n // (WIDTH << halvings))
    places = rows_per_group << halvings
    padded = torch.cat([z, z.new_zeros(places - n, z.shape[1])])
    by_direction = int(min(splits, halvings))
    cells = torch.randperm(places, generator=generator, device=z.device).view(1 << (halvings - by_direction), -1)
    for _ in range(by_direction):
        drawn = _integers(cells.shape[1], (2, len(cells), 1), generator)
        one, other = padded[cells.expand(2, -1, -1).gather(2, drawn)[:, :, 0]]
        along = (padded[cells] @ (one - other)[:, :, None])[:, :, 0]
        if along.device.type == "cpu":
            halved = torch.from_numpy(np.argpartition(along.numpy(), along.shape[1] // 2, axis=1))
        else:
            halved = along.argsort(dim=1)
        cells = cells.gather(1, halved).view(-1, cells.shape[1] // 2)
    return cells


def _thinned(groups: Tensor, z: Tensor, threshold: Threshold, enough: int, generator: torch.Generator) -> Tensor:
    """Halve all groups at random, as often as a row still finds enough similar rows in what remains."""
    width, places = groups.shape[1], _integers(groups.shape[1], (SAMPLED_GROUPS, 1), generator)
    members = groups[_integers(len(groups), (SAMPLED_GROUPS,), generator)]
    rows = z[members.clamp(max=len(z) - 1)] * (members < len(z))[:, :, None]
    row = rows.gather(1, places[:, :, None].expand(-1, -1, z.shape[1]))
    found = float((rows @ row.mT >= threshold).sum()) / SAMPLED_GROUPS
    halvings = int(math.log2(max(found / enough, 1)))
    while width % (WIDTH << halvings):
        halvings -= 1
    order = torch.randperm(width, generator=generator, device=z.device)
    return groups[:, order].view(-1, width >> halvings) if halvings else groups


def _integers(end: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(end, shape, generator=generator, device=generator.device)


class _Taken(torch.autograd.Function):
    """The given rows, 0 for those that do not exist; ``back`` has the place of every row of values in the result.

    torch's own derivative would add up rows, because it does not know that each is taken once: a step on 200,000 nodes
    would take a third longer.
    """

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
