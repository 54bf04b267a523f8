"""Products with a constant sparse matrix, differentiable in the dense factor."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gcnsl.csr import csr_tensor

_Pattern = tuple[Tensor, Tensor]
"""Row starts and columns."""


class SparseMatrix:
    """A constant sparse matrix M (n × m) for M·B, with Mᵀ kept beside it for the backward pass.

    torch can differentiate such a product by itself, but then multiplies with a transposed view of M, which is slow.
    The pattern of Mᵀ is found once; its values are those of M in another order, put there when first asked for.

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
        transposed_start = torch.cat([size.new_zeros(1), size.cumsum(0)])
        # MKL reads indices of 32 bits: torch would translate others for each product
        self._pattern = start.int(), column.int()
        self._transposed_pattern = transposed_start.int(), row[self._order].int()

    @classmethod
    def from_edges(cls, edge_index: Tensor, weight: Tensor, num_nodes: int) -> SparseMatrix:
        """The n × n matrix with ``weight`` at the places ``edge_index`` (2 × E, sorted by row, then column)."""
        size = torch.bincount(edge_index[0], minlength=num_nodes)
        start = torch.cat([size.new_zeros(1), size.cumsum(0)])
        return cls(csr_tensor(start, edge_index[1], weight, (num_nodes, num_nodes)))

    def with_values(self, values: Tensor) -> SparseMatrix:
        """The same pattern with other values."""
        return self._copy(values, self._pattern, self._transposed_pattern, self._order)

    def to(self, device: torch.device | str) -> SparseMatrix:
        """The matrix on another device, or itself where it is there."""
        values = self.values.to(device)
        if values is self.values:
            return self
        pattern, transposed_pattern = (
            (start.to(device), column.to(device)) for start, column in (self._pattern, self._transposed_pattern)
        )
        return self._copy(values, pattern, transposed_pattern, self._order.to(device))

    def to_dense(self) -> Tensor:
        """The matrix with its zeros (n × m)."""
        return self._matrix.to_dense()

    def __matmul__(self, dense: Tensor) -> Tensor:
        """M·B: (m × k) → (n × k)."""
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    @cached_property
    def _matrix(self) -> Tensor:
        return csr_tensor(*self._pattern, self.values, self.shape)

    @cached_property
    def _transposed(self) -> Tensor:
        return csr_tensor(*self._transposed_pattern, self.values[self._order], self.shape[::-1])

    def _copy(self, values: Tensor, pattern: _Pattern, transposed_pattern: _Pattern, order: Tensor) -> SparseMatrix:
        other = object.__new__(SparseMatrix)
        other.shape, other.values = self.shape, values
        other._pattern, other._transposed_pattern, other._order = pattern, transposed_pattern, order
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} × {self.shape[1]}, {len(self.values)} entries)"


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix._matrix @ dense

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix._transposed @ grad_outputs[0], None
