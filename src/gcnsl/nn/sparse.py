"""Products with a constant sparse matrix, differentiable in the dense factor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcnsl.csr import csr_tensor


class SparseMatrix:
    """A constant sparse matrix M (n × m) for M·B, with Mᵀ kept beside it for the backward pass.

    torch can differentiate such a product by itself, but then multiplies with a transposed view of M, which is slow.
    The pattern of Mᵀ is found once; its values are those of M in another order.

    Args:
        matrix: M as a torch CSR tensor.
    """

    def __init__(self, matrix: Tensor) -> None:
        n, m = matrix.shape
        start, column = matrix.crow_indices(), matrix.col_indices()
        row = torch.repeat_interleave(torch.arange(n, device=matrix.device), start.diff())
        self.shape = n, m
        self.values = matrix.values()
        self._order = torch.argsort(column, stable=True)
        size = torch.bincount(column, minlength=m)
        self._pattern = start, column
        self._transposed_pattern = torch.cat([size.new_zeros(1), size.cumsum(0)]), row[self._order]

    @classmethod
    def from_edges(cls, edge_index: Tensor, weight: Tensor, num_nodes: int) -> SparseMatrix:
        """The n × n matrix with ``weight`` at the places ``edge_index`` (2 × E, sorted by row, then column)."""
        size = torch.bincount(edge_index[0], minlength=num_nodes)
        start = torch.cat([size.new_zeros(1), size.cumsum(0)])
        return cls(csr_tensor(start, edge_index[1], weight, (num_nodes, num_nodes)))

    def with_values(self, values: Tensor) -> SparseMatrix:
        """The same pattern with other values."""
        other = object.__new__(SparseMatrix)
        other.__dict__.update(self.__dict__, values=values)
        return other

    def to(self, device: torch.device | str) -> SparseMatrix:
        """The matrix on another device."""
        other = self.with_values(self.values.to(device))
        other._order = self._order.to(device)
        other._pattern = (self._pattern[0].to(device), self._pattern[1].to(device))
        other._transposed_pattern = (self._transposed_pattern[0].to(device), self._transposed_pattern[1].to(device))
        return other

    def to_dense(self) -> Tensor:
        """The matrix with its zeros (n × m)."""
        return csr_tensor(*self._pattern, self.values, self.shape).to_dense()

    def __matmul__(self, dense: Tensor) -> Tensor:
        """M·B: (m × k) → (n × k)."""
        forward = csr_tensor(*self._pattern, self.values, self.shape)
        transposed = csr_tensor(*self._transposed_pattern, self.values[self._order], self.shape[::-1])
        product: Tensor = _Product.apply(dense, forward, transposed)  # type: ignore[no-untyped-call]
        return product

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} × {self.shape[1]}, {len(self.values)} entries)"


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, forward: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed = transposed
        return forward @ dense

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transposed @ grad_outputs[0], None, None
