"""A feature matrix, dense or CSR, behind one interface: float64 products with it in bounded memory."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import reduce
from operator import iadd
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Self, override

from gcnsl.sparse import csr_tensor, transposed

# Approximate size of a row block, and of the results computed from it.
BLOCK_BYTES = 2**25
# A float64 copy (and, for CSR, its transpose) of at most this size is kept for the many products of an iteration.
HELD_BYTES = 2**29
# Bytes per entry of a CSR copy and its transpose.
CSR_ENTRY_BYTES = 20

# Number of rows in a CSR block: its product with a few columns stays in the processor's cache.
_OPERATOR_ROWS = 2**15

Operators = Iterator[tuple[slice, Tensor, Tensor]]


class Rows(ABC):
    """X (n × d), dense or CSR, of any float dtype, on the CPU or a GPU. All products are in float64.

    Attributes:
        shape: (n, d).
        dtype: Dtype of X and of the features computed from it.
        device: Device of X, where all computations run.
        values: The stored entries: n × d if dense, one number per entry if CSR.
        as_numpy: Whether X was a NumPy or SciPy array, so that results are returned as arrays.
        row_width: Average number of stored numbers per row.
        quick: Whether repeated products with a few columns are cheap: X is sparse and held in float64.
        magnitude: 1 for ordinary data. Where the largest entry is so large or small that its square would overflow or
            vanish, the power of two below it: X must be divided by it (:meth:`divided`) before anything is squared.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device
    values: Tensor
    as_numpy: bool
    row_width: int
    quick: bool
    magnitude: float = 1.0

    @abstractmethod
    def block(self, rows: slice) -> Tensor:
        """X[rows] in float64, in X's own layout."""

    @abstractmethod
    def operators(self) -> Operators:
        """Row blocks of X with their transposes, in float64; kept for the next call if they are small enough."""

    @abstractmethod
    def take(self, index: Tensor) -> Rows:
        """The rows with these numbers as a new matrix."""

    @abstractmethod
    def row_sums(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Σ_k function(x_ik) (n), for a function of entries that maps 0 to 0."""

    def squared_norms(self) -> Tensor:
        """‖x_i‖² (n)."""
        return self.row_sums(lambda values: values.double().square())

    def negative_rows(self) -> Tensor:
        """Which rows have a negative entry (n, bool)."""
        return self.row_sums(lambda values: values < 0) > 0

    def matmul(self, right: Tensor) -> Tensor:
        """X · right: (d × k) → (n × k)."""
        if self.quick:
            parts = [block @ right for _, block, _ in self.operators()]
        else:
            parts = [self.block(rows) @ right for rows in self.slices(right.shape[1])]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def t_matmul(self, left: Tensor) -> Tensor:
        """Xᵀ · left: (n × k) → (d × k)."""
        return reduce(iadd, (adjoint @ left[rows] for rows, _, adjoint in self.operators()))

    def gram_matmul(self, weight: Tensor, right: Tensor) -> Tensor:
        """Xᵀ (weight ∘ X · right): (n × 1), (d × k) → (d × k), in blocks whose X · right stays in the cache."""
        products = (adjoint @ (block @ right).mul_(weight[rows]) for rows, block, adjoint in self.operators())
        return reduce(iadd, products)

    def slices(self, width: int) -> Iterator[slice]:
        """Ranges of rows that fill about a block, as do ``width`` float64 numbers for each of them."""
        step = max(1, BLOCK_BYTES // (8 * max(width, self.row_width)))
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))

    def divided(self, by: float) -> Self:
        """X / by, held in float64, for results in X's own dtype."""
        if by == 1:
            return self
        other = copy.copy(self)
        other.values, other.magnitude = self.values.double() / by, 1.0
        return other

    def deliver(self, result: Tensor) -> Any:
        """Return a result as an array or a tensor, whichever X was."""
        return result.numpy() if self.as_numpy else result


class DenseRows(Rows):
    """A dense X, converted to float64 once if it is small, and block by block otherwise."""

    quick = False

    def __init__(self, values: Tensor, *, as_numpy: bool) -> None:
        n, self.row_width = values.shape
        self.shape = n, self.row_width
        self.dtype, self.device, self.as_numpy = values.dtype, values.device, as_numpy
        held = values.dtype != torch.float64 and values.numel() * 8 <= HELD_BYTES
        self.values = values.double() if held else values

    @override
    def block(self, rows: slice) -> Tensor:
        return self.values[rows].double()

    @override
    def operators(self) -> Operators:
        whole = [slice(0, self.shape[0])] if self.values.dtype == torch.float64 else self.slices(self.shape[1])
        for rows in whole:
            block = self.block(rows)
            yield rows, block, block.T

    @override
    def take(self, index: Tensor) -> DenseRows:
        return DenseRows(self.values[index], as_numpy=self.as_numpy)

    @override
    def row_sums(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.cat([function(self.values[rows]).sum(1) for rows in self.slices(1)])


class SparseRows(Rows):
    """A CSR X, never made dense as a whole: row starts (n + 1), and a column and a value per stored entry."""

    def __init__(self, start: Tensor, column: Tensor, values: Tensor, d: int, *, as_numpy: bool) -> None:
        self.shape = len(start) - 1, d
        self.dtype, self.device, self.as_numpy = values.dtype, values.device, as_numpy
        self.start, self.column, self.values = start, column, values
        self.row_width = math.ceil(2 * len(values) / self.shape[0])
        self.quick = len(values) * CSR_ENTRY_BYTES <= HELD_BYTES
        self._held: list[tuple[slice, Tensor, Tensor]] | None = None

    def __getstate__(self) -> dict[str, Any]:  # for copies and pickles
        return {**self.__dict__, "_held": None}

    @override
    def block(self, rows: slice, function: Callable[[Tensor], Tensor] = Tensor.double) -> Tensor:
        start = self.start[rows.start : rows.stop + 1]
        part = slice(int(start[0]), int(start[-1]))
        values = function(self.values[part]).double()
        return csr_tensor(start - start[0], self.column[part], values, (len(start) - 1, self.shape[1]))

    @override
    def operators(self) -> Operators:
        if self.quick and self._held is None:
            self._held = list(self._transposing())
        return iter(self._held) if self._held is not None else self._transposing()

    def _transposing(self) -> Operators:
        for start in range(0, self.shape[0], _OPERATOR_ROWS):
            rows = slice(start, min(start + _OPERATOR_ROWS, self.shape[0]))
            block = self.block(rows)
            yield rows, block, transposed(block)

    @override
    def take(self, index: Tensor) -> SparseRows:
        count = self.start.diff()[index]
        start = torch.cat([self.start.new_zeros(1), count.cumsum(0, dtype=self.start.dtype)])
        shift = torch.repeat_interleave(self.start[index] - start[:-1], count)
        entry = torch.arange(len(shift), device=self.device) + shift
        return SparseRows(start, self.column[entry], self.values[entry], self.shape[1], as_numpy=self.as_numpy)

    @override
    def row_sums(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        ones = torch.ones(self.shape[1], dtype=torch.float64, device=self.device)
        return torch.cat([self.block(rows, function) @ ones for rows in self.slices(1)])
