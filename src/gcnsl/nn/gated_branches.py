"""What GCN-SL and GCN-SL+ share: gated branches in the last layer, and what explains these and a learned graph."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from gcnsl.nn.graph_model import FeatureLinear, GraphModel, dropout, scale_of_kept
from gcnsl.reconnection import reconnected_edges
from gcnsl.sparse import Matrix

WHOLE_NODES = 1 << 16
"""Up to this many nodes, H^cb is made as a whole. It takes less time than in parts, and more memory."""


class GatedBranches(GraphModel):
    """A model whose last layer is ReLU(w ⊙ H^cb) W, where H^cb are branches (n × p) side by side."""

    gate: nn.Parameter
    lin_out: FeatureLinear
    branch_names: list[str]

    def reset_parameters(self) -> None:
        """Draw new weights (Glorot's uniform distribution); the gate starts at 1."""
        super().reset_parameters()
        nn.init.ones_(self.gate)

    def each_branch(self, *inputs: Any, **options: Any) -> Iterable[Tensor]:
        """The blocks of H^cb, all of the same shape (n × p), which may be made when they are asked for."""
        raise NotImplementedError

    def logits(self, *inputs: Any, **options: Any) -> Tensor:
        """Logits of every node (n × C)."""
        branches, rate = self.each_branch(*inputs, **options), self.config.dropout
        return gated_logits(branches, self.gate, self.lin_out.weight, rate=rate, training=self.training)

    @torch.no_grad()
    def evidence(self, *inputs: Any, node: int, one: int, other: int) -> dict[str, float]:
        """What each branch adds to the difference of the logits of two classes at a node; a logit is their sum."""
        was_training = self.training
        self.eval()
        rows = [branch[[node]] for branch in self.each_branch(*inputs)]
        self.train(was_training)
        parts = gated(rows, self.gate)[0] * (self.lin_out.weight[one] - self.lin_out.weight[other])
        evidence = dict.fromkeys(self.branch_names, 0.0)
        for name, part in zip(self.branch_names, parts.view(len(rows), -1).sum(dim=1).tolist(), strict=True):
            evidence[name] += part
        return evidence


def gated(branches: Sequence[Tensor], gate: Tensor) -> Tensor:
    """ReLU(w ⊙ H^cb), where H^cb are the branches (each n × p) side by side."""
    return functional.relu(gate * torch.cat(list(branches), dim=1), inplace=True)


def gated_logits(branches: Iterable[Tensor], gate: Tensor, weight: Tensor, *, rate: float, training: bool) -> Tensor:
    """Logits ReLU(w ⊙ H^cb) W (n × C), with dropout before W, for b branches (n × p), w (b·p) and Wᵀ (C × b·p).

    In a large graph, the branches are gated and multiplied one after the other, and the backward pass does this again.
    Otherwise every step between the branches and the logits would be kept until then, each as large as all branches.
    If the branches are made one after the other, too, the backward pass is done with one before it comes to the next.
    """
    branches, rate = iter(branches), rate if training else 0.0
    first = next(branches)
    if len(first) <= WHOLE_NODES:
        return functional.linear(dropout(gated([first, *branches], gate), rate, training=True), weight)
    total, begin = first.new_zeros(len(first), len(weight)), 0
    for branch in chain([first], branches):
        part = slice(begin, begin := begin + branch.shape[1])
        drawn = rate, int(torch.randint(2**62, ())) if training else 0
        total = total + _GatedProduct.apply(branch, gate[part], weight[:, part], drawn)  # type: ignore[no-untyped-call]
    return total


class _GatedProduct(torch.autograd.Function):
    """The part of the logits that comes from one branch. Between the passes, it keeps nothing but the branch itself.

    With ``torch.utils.checkpoint`` and torch's own derivatives instead, forward and backward pass take 1.35 times as
    long (200,000 nodes, 5 branches of 64 columns, one thread).
    """

    @staticmethod
    def forward(ctx: Any, branch: Tensor, gate: Tensor, weight: Tensor, drawn: tuple[float, int]) -> Tensor:
        ctx.save_for_backward(branch, gate, weight)
        ctx.drawn = drawn
        return _gated_and_dropped(branch, gate, *drawn) @ weight.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (branch, gate, weight), drawn = ctx.saved_tensors, ctx.drawn
        values = _gated_and_dropped(branch, gate, *drawn)
        of_weight = grads[0].T @ values
        of_product = (grads[0] @ weight).mul_(values > 0).mul_(scale_of_kept(values, drawn[0]))  # that of w ⊙ H
        of_gate = torch.mul(of_product, branch, out=values).sum(dim=0)
        return of_product.mul_(gate), of_gate, of_weight, None


def _gated_and_dropped(branch: Tensor, gate: Tensor, rate: float, seed: int) -> Tensor:
    """ReLU(w ⊙ H) of one branch, with dropout of the same entries at each call with the same seed."""
    values = (gate * branch).relu_()
    with torch.random.fork_rng(devices=[values.device] if values.is_cuda else []):
        torch.manual_seed(seed)
        return dropout(values, rate, training=True, in_place=True)


class ComparedRows(NamedTuple):
    r"""The rows r_i of a matrix R by which a learned graph compares nodes, :math:`s_{ij} = \cos(r_i Q, r_j Q)`."""

    name: str
    measure: Literal["links", "features"]
    """Whether R is A or X."""
    rows: Matrix
    """R (n × r)."""
    weight: Tensor
    """Qᵀ (q × r)."""
    epsilon: float
    """The smallest similarity that joins two nodes."""

    @torch.no_grad()
    def similarities(self, node: int) -> Tensor:
        """The similarities of a node to all nodes (n)."""
        z = unit_rows(self.rows @ self.weight.T)
        return z @ z[node]

    @torch.no_grad()
    def parts(self, node: int, other: int) -> Tensor:
        r"""The parts of a similarity by the columns of R (r), whose sum it is.

        With :math:`u_i = r_i Q`, a column c adds :math:`(r_{ic}\, Q_c \cdot u_j + r_{jc}\, Q_c \cdot u_i) / 2` to the
        product :math:`u_i \cdot u_j`, which is then divided by the lengths of both.
        """
        one, two = (self.row(each) for each in (node, other))
        u, v = one @ self.weight.T, two @ self.weight.T
        lengths = u.norm() * v.norm()
        product = one * (v @ self.weight) + two * (u @ self.weight)
        return product / (2 * torch.where(lengths > 0, lengths, 1.0))

    def row(self, node: int) -> Tensor:
        """A row of R (r)."""
        return self.rows[node] if isinstance(self.rows, Tensor) else self.rows.row(node)


def unit_rows(rows: Tensor) -> Tensor:
    """Rows divided by their length; zero rows stay zero.

    Weight decay can shrink Q until squares underflow. Each row is therefore first divided by its largest magnitude,
    which cancels in the result and so needs no derivative.
    """
    largest = rows.detach().abs().amax(dim=1, keepdim=True)
    return functional.normalize(rows / torch.where(largest > 0, largest, 1.0), dim=1)


def edges_of_rows(z: Tensor, epsilon: float, rows: slice | None, *, loops: bool = True) -> tuple[Tensor, Tensor]:
    """The edges of A* that begin in some rows of z, or in all: edge_index (2 × E) and similarities (E)."""
    if rows is None:
        return reconnected_edges(z, epsilon, loops=loops)
    (row, column), similarity = reconnected_edges(z[rows], epsilon, keys=z)
    row = torch.arange(len(z), device=z.device)[rows][row]
    kept = slice(None) if loops else row != column
    return torch.stack([row, column])[:, kept], similarity[kept]
