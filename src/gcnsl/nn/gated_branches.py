"""The last layer of GCN-SL and GCN-SL+: branches side by side, gated, and mapped to logits."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gcnsl.nn.dropout import dropout
from gcnsl.sharding.node_rows import number_of_nodes

WHOLE_NODES = 1 << 16
"""Up to this many nodes, H^cb is made as a whole. It takes less time than in parts, and more memory."""


def gated(branches: Sequence[Tensor], gate: Tensor) -> Tensor:
    """ReLU(w ⊙ H^cb), where H^cb are the branches (each n × p) side by side."""
    return functional.relu(gate * torch.cat(list(branches), dim=1), inplace=True)


def gated_logits(branches: Sequence[Tensor], gate: Tensor, weight: Tensor, *, rate: float, training: bool) -> Tensor:
    """Logits ReLU(w ⊙ H^cb) W (n × C), with dropout before W.

    In a large graph, the branches are gated and multiplied one after the other, and the backward pass does this again.
    Otherwise every step between the branches and the logits would be kept until then, each as large as all branches.

    Args:
        branches: The blocks of H^cb (b of them, n × p each).
        gate: w (b·p).
        weight: W, transposed (C × b·p).
        rate: Rate of dropout.
        training: Whether to drop entries.
    """

    def logits(part: Sequence[Tensor], gate: Tensor, weight: Tensor) -> Tensor:
        return functional.linear(dropout(gated(part, gate), rate, training=training), weight)

    if number_of_nodes(branches[0]) <= WHOLE_NODES:
        return logits(branches, gate, weight)
    total = branches[0].new_zeros(len(branches[0]), len(weight))
    sizes = [branch.shape[1] for branch in branches]
    for branch, own_gate, own_weight in zip(
        branches, torch.split(gate, sizes), torch.split(weight, sizes, dim=1), strict=True
    ):
        total = total + checkpoint(logits, [branch], own_gate, own_weight, use_reentrant=False)
    return total
