"""What a learned graph compares, and why two nodes are similar in it."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from gcnsl.sparse import Matrix


class ComparedRows(NamedTuple):
    r"""The rows r_i of a matrix R by which nodes are compared, :math:`s_{ij} = \cos(r_i Q, r_j Q)`.

    Attributes:
        name: Name of the learned graph.
        measure: Whether R is A (``"links"``) or X (``"features"``).
        rows: R (n × r), dense or sparse.
        weight: Qᵀ (q × r).
        epsilon: The smallest similarity that joins two nodes.
    """

    name: str
    measure: Literal["links", "features"]
    rows: Matrix
    weight: Tensor
    epsilon: float

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
