"""A* of a large graph on a CPU: each row is compared with some rows that are likely similar, not with all.

The cost of a pass grows with n instead of n². The average over the similar rows that a group contains estimates the
average over all of them.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcnsl.reconnection.arguments import computed_in, threshold_of
from gcnsl.reconnection.groups import similar_groups
from gcnsl.reconnection.numba_pairs import Searched
from gcnsl.reconnection.operator import reconnect
from gcnsl.reconnection.pairs import PairMemory, Pairs, Regime, capacity

EXACT_NODES = 1 << 15
SAMPLED_ROWS, SAMPLED_KEYS = 64, 1 << 15


class Effort(NamedTuple):
    most: int
    enough: int


TRAINING, EVALUATION = Effort(1 << 10, 32), Effort(1 << 12, 64)


def reconnect_at_any_size(z, h, epsilon, *, loops=True, training, memory=None):
    if len(z) <= EXACT_NODES or z.device.type != "cpu":
        return reconnect(z, h, epsilon, loops=loops, memory=memory)
    if training:
        return reconnect_in_groups(z, h, epsilon, loops=loops, effort=TRAINING, seed=int(torch.randint(2**62, ())))
    return reconnect_in_groups(z, h, epsilon, loops=loops, effort=EVALUATION)


def reconnect_in_groups(
    z: Tensor, h: Tensor, epsilon: float, *, loops: bool = True, effort: Effort = TRAINING, seed: int = 0
) -> Tensor:
    rows, threshold, rng = z.detach().to(computed_in(z.dtype)), threshold_of(epsilon, z.dtype), np.random.default_rng(seed)
    most, splits = plan(rows, threshold, effort, rng)
    groups = similar_groups(rows.numpy(), most, splits, rng)
    order = torch.from_numpy(groups.ravel())
    grouped_z, grouped_h = (_Permuted.apply(x, order) for x in (z, h))
    memory = PairMemory()
    detached = grouped_z.detach()
    listed = Searched.of(detached, detached, threshold).listed(capacity(detached, len(detached)), groups.shape[1])
    assert listed is not None
    pairs = Pairs(torch.from_numpy(listed.start), torch.from_numpy(listed.columns), torch.tensor(int(Regime.LISTED)))
    memory.keep(detached, threshold, pairs)
    out = reconnect(grouped_z, grouped_h, epsilon, loops=loops, backend="numba", memory=memory)
    return _Restored.apply(out, order, len(z))


def plan(z, threshold, effort, rng):
    n = len(z)
    rows, keys = (torch.from_numpy(rng.integers(n, size=k)) for k in (SAMPLED_ROWS, SAMPLED_KEYS))
    share = float((z[rows] @ z[keys].T >= threshold).float().mean())
    most = int(min(effort.most, max(128, effort.enough / max(share, 1e-12))))
    splits = max(0, int(np.ceil(np.log2(effort.enough / max(share * most, 1e-9)))))
    return most, splits


class _Permuted(torch.autograd.Function):
    """x[order] (N × k), with zeros where the order is beyond x."""

    @staticmethod
    def forward(ctx, x, order):
        ctx.save_for_backward(order); ctx.n = len(x)
        return _permuted(x, order)

    @staticmethod
    def backward(ctx, grad):
        return _restored(grad, ctx.saved_tensors[0], ctx.n), None


class _Restored(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, order, n):
        ctx.save_for_backward(order)
        return _restored(x, order, n)

    @staticmethod
    def backward(ctx, grad):
        return _permuted(grad, ctx.saved_tensors[0]), None, None

def _permuted(x, order):
    return torch.cat([x, x.new_zeros(len(order) - len(x), x.shape[1])])[order]

def _restored(x, order, n):
    place = torch.empty_like(order); place[order] = torch.arange(len(order))
    return x[place[:n]]
