"""The last layer of GCN-SL and GCN-SL+: branches side by side, gated, and mapped to logits."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from gcnsl.nn.dropout import dropout, scale_of_kept

WHOLE_NODES = 1 << 16
"""Up to this many nodes, H^cb is made as a whole. It takes less time than in parts, and more memory."""


def gated(branches: Sequence[Tensor], gate: Tensor) -> Tensor:
    """ReLU(w ⊙ H^cb), where H^cb are the branches (each n × p) side by side."""
    return functional.relu(gate * torch.cat(list(branches), dim=1), inplace=True)


def gated_logits(branches: Iterable[Tensor], gate: Tensor, weight: Tensor, *, rate: float, training: bool) -> Tensor:
    """Logits ReLU(w ⊙ H^cb) W (n × C), with dropout before W.

    In a large graph, the branches are gated and multiplied one after the other, and the backward pass does this again.
    Otherwise every step between the branches and the logits would be kept until then, each as large as all branches.
    If the branches are made one after the other, too, the backward pass is done with one before it comes to the next.

    Args:
        branches: The blocks of H^cb (b of them, n × p each), which may be made when they are asked for.
        gate: w (b·p).
        weight: W, transposed (C × b·p).
        rate: Rate of dropout.
        training: Whether to drop entries.
    """
    branches = iter(branches)
    first = next(branches)
    if len(first) <= WHOLE_NODES:
        dropped = dropout(gated([first, *branches], gate), rate, training=training)
        return functional.linear(dropped, weight)
    total, begin = first.new_zeros(len(first), len(weight)), 0
    for branch in chain([first], branches):
        end = begin + branch.shape[1]
        drawn = _Dropout(rate, seed=int(torch.randint(2**62, ()))) if training else _Dropout(0.0, seed=0)
        part: Tensor = _GatedProduct.apply(branch, gate[begin:end], weight[:, begin:end], drawn)  # type: ignore[no-untyped-call]
        total = total + part
        begin = end
    return total


class _Dropout(NamedTuple):
    """Dropout that can be repeated."""

    rate: float
    seed: int

    def of(self, values: Tensor) -> Tensor:
        """Drop some of the values themselves, the same ones at each call."""
        with torch.random.fork_rng(devices=[values.device] if values.is_cuda else []):
            torch.manual_seed(self.seed)
            return dropout(values, self.rate, training=True, in_place=True)


class _GatedProduct(torch.autograd.Function):
    """The part of the logits that comes from one branch. Between the passes, it keeps nothing but the branch itself."""

    @staticmethod
    def forward(ctx: Any, branch: Tensor, gate: Tensor, weight: Tensor, drawn: _Dropout) -> Tensor:
        ctx.save_for_backward(branch, gate, weight)
        ctx.drawn = drawn
        return drawn.of((gate * branch).relu_()) @ weight.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (branch, gate, weight), drawn = ctx.saved_tensors, ctx.drawn
        values = drawn.of((gate * branch).relu_())
        of_weight = grads[0].T @ values
        of_product = (grads[0] @ weight).mul_(values > 0).mul_(scale_of_kept(values, drawn.rate))  # that of w ⊙ H
        of_gate = torch.mul(of_product, branch, out=values).sum(dim=0)
        return of_product.mul_(gate), of_gate, of_weight, None
