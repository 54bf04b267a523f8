"""A feature matrix of any layout as one thing: float64 products with it, in bounded memory."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor
from typing_extensions import override

from gcnsl.sparse import csr_tensor

Array = npt.NDArray[Any]

# A row block and what is computed from it stay near this size.
BLOCK_BYTES = 2**25
# Up to this size a float64 copy (and, for CSR, its transpose) is kept for the many products of an iteration.
HELD_BYTES = 2**29
# What an entry of that copy and its transpose takes.
CSR_ENTRY_BYTES = 20

# Rows of a CSR block such that its product with a few columns stays in the cache.
_OPERATOR_ROWS = 2**15

Operators = Iterator[tuple[slice, Tensor, Tensor]]


class Rows(ABC):
    """X (n × d), dense or CSR, float32 or float64, on the CPU or a GPU; all products are in float64.

    Attributes:
        shape: (n, d).
        dtype: of X, and so of the features computed from it.
        device: where X lies and the work is done.
        as_numpy: whether X came as a NumPy or SciPy array, and results go back as one.
        quick: whether repeated products with a few columns are cheap: X is sparse, and held in float64.
    """

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device
    as_numpy: bool
    quick: bool

    @abstractmethod
    def block(self, rows: slice) -> Tensor:
        """X[rows] in float64, in X's own layout."""

    @abstractmethod
    def operators(self) -> Operators:
        """Row blocks of X with their transposes, float64, from memory where they fit there."""

    @abstractmethod
    def take(self, index: Tensor) -> Rows:
        """The rows ``index`` as a matrix of their own."""

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """‖x_i‖² (n)."""

    @abstractmethod
    def negative_rows(self) -> Tensor:
        """Which rows have a negative entry (n, bool)."""

    @abstractmethod
    def row_width(self) -> int:
        """Stored numbers a row, on average."""

    def matmul(self, right: Tensor) -> Tensor:
        """X · right: (d × k) → (n × k)."""
        if self.quick:
            parts = [block @ right for _, block, _ in self.operators()]
        else:
            parts = [self.block(rows) @ right for rows in self.slices(right.shape[1])]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def t_matmul(self, left: Tensor) -> Tensor:
        """Xᵀ · left: (n × k) → (d × k)."""
        return _sum(transposed @ left[rows] for rows, _, transposed in self.operators())

    def gram_matmul(self, weight: Tensor, right: Tensor) -> Tensor:
        """Xᵀ (weight ∘ X · right): (n × 1), (d × k) → (d × k), block by block, so that X · right stays in the cache."""
        return _sum(transposed @ (block @ right).mul_(weight[rows]) for rows, block, transposed in self.operators())

    def slices(self, width: int) -> Iterator[slice]:
        """Row ranges such that ``width`` float64 numbers a row, and the rows themselves, fill about a block."""
        step = max(1, BLOCK_BYTES // (8 * max(width, self.row_width())))
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))

    def empty(self, columns: int) -> Tensor:
        """An n × columns matrix for results, in X's dtype."""
        return torch.empty(self.shape[0], columns, dtype=self.dtype, device=self.device)

    def deliver(self, result: Tensor) -> Any:
        """Hand a result back in the caller's kind of array."""
        return result.numpy() if self.as_numpy else result


class DenseRows(Rows):
    """A dense X, converted to float64 block by block, or once where it is small."""

    quick = False

    def __init__(self, values: Tensor, *, as_numpy: bool) -> None:
        n, d = values.shape
        self.shape = n, d
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
    def squared_norms(self) -> Tensor:
        return torch.cat([self.block(rows).square().sum(1) for rows in self.slices(self.shape[1])])

    @override
    def negative_rows(self) -> Tensor:
        return torch.cat([(self.values[rows] < 0).any(1) for rows in self.slices(self.shape[1])])

    @override
    def row_width(self) -> int:
        return self.shape[1]


class SparseRows(Rows):
    """A CSR X, never made dense as a whole: ``start`` (n + 1), ``column`` and ``value`` (one an entry)."""

    def __init__(self, start: Tensor, column: Tensor, value: Tensor, d: int, *, as_numpy: bool) -> None:
        self.shape = len(start) - 1, d
        self.dtype, self.device, self.as_numpy = value.dtype, value.device, as_numpy
        self.start, self.column, self.value = start, column, value
        self.quick = len(value) * CSR_ENTRY_BYTES <= HELD_BYTES
        self._held: list[tuple[slice, Tensor, Tensor]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}

    @override
    def block(self, rows: slice) -> Tensor:
        return self._map_block(rows, Tensor.double)

    def _map_block(self, rows: slice, change: Callable[[Tensor], Tensor]) -> Tensor:
        """X[rows] with every stored value changed."""
        first, last = int(self.start[rows.start]), int(self.start[rows.stop])
        start = self.start[rows.start : rows.stop + 1] - self.start[rows.start]
        return csr_tensor(
            start, self.column[first:last], change(self.value[first:last]), (len(start) - 1, self.shape[1])
        )

    @override
    def operators(self) -> Operators:
        if not self.quick:
            yield from self._transposing()
        else:
            self._held = self._held or list(self._transposing())
            yield from self._held

    def _transposing(self) -> Operators:
        for start in range(0, self.shape[0], _OPERATOR_ROWS):
            rows = slice(start, min(start + _OPERATOR_ROWS, self.shape[0]))
            block = self.block(rows)
            yield rows, block, _transposed(block)

    @override
    def take(self, index: Tensor) -> SparseRows:
        count = self.start.diff()[index]
        start = torch.cat([self.start.new_zeros(1), count.cumsum(0, dtype=self.start.dtype)])
        shift = torch.repeat_interleave(self.start[index] - start[:-1], count)
        entry = torch.arange(len(shift), device=self.device) + shift
        return SparseRows(start, self.column[entry], self.value[entry], self.shape[1], as_numpy=self.as_numpy)

    def _row_sums(self, change: Callable[[Tensor], Tensor]) -> Tensor:
        ones = torch.ones(self.shape[1], dtype=torch.float64, device=self.device)
        return torch.cat([self._map_block(rows, change) @ ones for rows in self.slices(1)])

    @override
    def squared_norms(self) -> Tensor:
        return self._row_sums(lambda value: value.double().square())

    @override
    def negative_rows(self) -> Tensor:
        if not bool((self.value < 0).any()):
            return torch.zeros(self.shape[0], dtype=torch.bool, device=self.device)
        return self._row_sums(lambda value: (value < 0).double()) > 0

    @override
    def row_width(self) -> int:
        return math.ceil(2 * len(self.value) / self.shape[0])


def _sum(parts: Iterator[Tensor]) -> Tensor:
    """Add the parts up in the first of them."""
    total = next(parts)
    for part in parts:
        total += part
    return total


def as_tensor(x: Array) -> Tensor:
    """View an array as a tensor; nothing here writes to it, so a read-only one is as good."""
    if any(stride < 0 for stride in x.strides):
        x = np.ascontiguousarray(x)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ", category=UserWarning)
        return torch.from_numpy(x)


def _transposed(matrix: Tensor) -> Tensor:
    """The transpose as a CSR matrix of its own: torch is slow with a transposed view of one."""
    n, d = matrix.shape
    start, column, value = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    if matrix.device.type == "cpu":
        view = scipy.sparse.csr_array((value.numpy(), column.numpy(), start.numpy()), shape=(n, d))
        swapped = view.T.tocsr()
        return csr_tensor(as_tensor(swapped.indptr), as_tensor(swapped.indices), as_tensor(swapped.data), (d, n))
    swapped_csc = matrix.to_sparse_csc()
    return csr_tensor(swapped_csc.ccol_indices(), swapped_csc.row_indices(), swapped_csc.values(), (d, n))
