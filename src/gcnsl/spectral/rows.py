"""A feature matrix of any kind, read and checked, with float64 products in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from operator import iadd
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcnsl.checks import as_array
from gcnsl.cores import torch_threads_for
from gcnsl.errors import InputError
from gcnsl.sparse import (
    SPARSE_SHARE,
    as_tensor,
    csr_tensor,
    slice_rows,
    stored_entries,
    take_rows,
    to_scipy,
    transposed,
)

# Approximate size of a row block, and of the results computed from it.
BLOCK_BYTES = 2**25
# A float64 copy (and, for CSR, its transpose) of at most this size is kept for the many products of an iteration.
HELD_BYTES = 2**29
# Bytes per entry of a CSR copy and its transpose.
_CSR_ENTRY_BYTES = 20
# Number of rows in a CSR block: its product with a few columns stays in the processor's cache.
_OPERATOR_ROWS = 2**15
# Products of up to four entries within these bounds neither overflow nor vanish in float64.
_ORDINARY = 1e-60, 1e60

Operators = Iterator[tuple[slice, Tensor, Tensor]]


class Rows:
    """X (n × d), dense or CSR, on the CPU or a GPU. All products are in float64; a CSR matrix is never made dense.

    Attributes:
        x: X itself in float32 or float64; in float64 if it is dense and small.
        dtype: Dtype of the features computed from X.
        device: Device of X, where all computations run.
        sparse: Whether x is CSR.
        as_numpy: Whether X was a NumPy or SciPy array, so that results are returned as arrays.
        quick: Whether repeated products with a few columns are cheap: X is sparse and held in float64.
        magnitude: 1 for ordinary data. Where the largest entry is so large or small that its square would overflow or
            vanish, the power of two below it: X must be divided by it (:meth:`divided`) before anything is squared.
    """

    def __init__(self, x: Tensor, *, dtype: torch.dtype, as_numpy: bool) -> None:
        self.shape = n, d = x.shape[0], x.shape[1]
        self.dtype, self.device, self.as_numpy, self.magnitude = dtype, x.device, as_numpy, 1.0
        self.sparse = x.layout == torch.sparse_csr
        stored = stored_entries(x)
        held = stored * (_CSR_ENTRY_BYTES if self.sparse else 8) <= HELD_BYTES
        self.quick = self.sparse and held
        self.x = x.double() if held and not self.sparse else x
        self._row_width = math.ceil(2 * stored / n) if self.sparse else d
        self._held: list[tuple[slice, Tensor, Tensor]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}

    def block(self, rows: slice, function: Callable[[Tensor], Tensor] = Tensor.double) -> Tensor:
        """X[rows] in X's own layout, in float64 or with another function, which maps 0 to 0, of its entries."""
        return _mapped(slice_rows(self.x, rows.start, rows.stop), function)

    def work(self, count: int) -> int:
        """The multiply-adds that finding ``count`` components takes, roughly: each product with X is made twice."""
        return 2 * stored_entries(self.x) * (4 * count + 64)

    def slices(self, width: int) -> Iterator[slice]:
        """Ranges of rows that fill about a block, as do ``width`` float64 numbers for each of them."""
        return self._ranges(max(1, BLOCK_BYTES // (8 * max(width, self._row_width))))

    def _ranges(self, step: int) -> Iterator[slice]:
        for start in range(0, self.shape[0], step):
            yield slice(start, min(start + step, self.shape[0]))

    def operators(self) -> Operators:
        """Row blocks of X with their transposes, in float64; kept for the next call if X is quick."""
        if not self.quick:
            return self._operators()
        if self._held is None:
            self._held = list(self._operators())
        return iter(self._held)

    def _operators(self) -> Operators:
        if self.sparse:
            ranges = self._ranges(_OPERATOR_ROWS)
        else:
            ranges = self._ranges(self.shape[0]) if self.x.dtype == torch.float64 else self.slices(1)
        for rows in ranges:
            block = self.block(rows)
            yield rows, block, transposed(block) if self.sparse else block.T

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

    def squared_norms(self) -> Tensor:
        """‖x_i‖² (n)."""
        return self._row_sums(lambda values: values.double().square())

    def negative_rows(self) -> Tensor:
        """Which rows have a negative entry (n, bool)."""
        return self._row_sums(lambda values: (values < 0).double()) > 0

    def _row_sums(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        ones = torch.ones(self.shape[1], dtype=torch.float64, device=self.device)
        return torch.cat([self.block(rows, function) @ ones for rows in self.slices(1)])

    def take(self, index: Tensor) -> Rows:
        """The rows with these numbers as a new matrix."""
        taken = take_rows(self.x.cpu(), index.cpu().numpy()) if self.sparse else self.x[index]
        return Rows(_narrow(taken).to(self.device), dtype=self.dtype, as_numpy=self.as_numpy)

    def divided(self, by: float) -> Rows:
        """X / by, held in float64, for results in X's own dtype."""
        if by == 1:
            return self
        return Rows(_mapped(self.x, lambda values: values.double() / by), dtype=self.dtype, as_numpy=self.as_numpy)

    def deliver(self, result: Tensor) -> Any:
        """Return a result as an array or a tensor, whichever X was."""
        return result.numpy() if self.as_numpy else result


def as_rows(x: Any) -> Rows:
    """Check a feature matrix and wrap it, without a copy where its layout allows.

    It is a NumPy array (or anything that converts to one), a SciPy sparse matrix or array, or a torch tensor, dense or
    sparse. Error messages call it X.
    """
    as_numpy = not isinstance(x, Tensor)
    if as_numpy and not scipy.sparse.issparse(x):
        x = as_array(x, "X")
    shape = tuple(x.shape)
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"X has shape {shape}: it must be two-dimensional with at least one row and one column")
    is_real = x.dtype.kind in "biuf" if as_numpy else not x.dtype.is_complex
    if not is_real:
        raise InputError(f"X has dtype {x.dtype}: features must be real numbers")
    if as_numpy:
        float_type = x.dtype.newbyteorder("=") if x.dtype.char in "efd" else np.dtype(np.float64)
        dtype = as_tensor(np.empty(0, float_type)).dtype
        x = x.astype(np.promote_types(float_type, np.float32), copy=False)
    else:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        x = x.detach().to(torch.promote_types(dtype, torch.float32))
        if x.device.type == "cpu":
            x = x.numpy() if x.layout == torch.strided else to_scipy(x)
    with torch_threads_for(math.prod(shape)):
        rows = Rows(_read(x), dtype=dtype, as_numpy=as_numpy)
        largest = _largest_magnitude(rows.x.values() if rows.sparse else rows.x)
    if not math.isfinite(largest):
        raise InputError("X holds a NaN or an infinite entry: replace or remove such entries first")
    if largest and not _ORDINARY[0] <= largest <= _ORDINARY[1]:
        rows.magnitude = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return rows


def _read(x: Any) -> Tensor:
    """A dense or CSR tensor. Dense arrays become CSR if most entries are zero, as in a bag of words."""
    if isinstance(x, Tensor):
        return x if x.layout in (torch.strided, torch.sparse_csr) else x.to_sparse_csr()
    if scipy.sparse.issparse(x):
        x = x.tocsr()
        if not x.has_canonical_format:  # the caller's matrix is not changed
            x = x.copy()
            x.sum_duplicates()
        start, column, value = x.indptr, x.indices, x.data
    else:
        n, d = x.shape
        stored = int(np.count_nonzero(x))
        if stored > SPARSE_SHARE * x.size or stored * _CSR_ENTRY_BYTES > HELD_BYTES:
            return as_tensor(x)
        place = np.flatnonzero(x != 0)  # SciPy takes four times as long
        start, column = np.searchsorted(place, np.arange(0, n * d + 1, d)), place % d
        value = np.ascontiguousarray(x).reshape(-1)[place]
    return _narrow(csr_tensor(as_tensor(start), as_tensor(column), as_tensor(value), x.shape))


def _narrow(x: Tensor) -> Tensor:
    """A CSR matrix with 32-bit indices, if they suffice: MKL reads these, torch would convert others every time."""
    if x.layout == torch.strided or max(len(x.values()), x.shape[1]) >= 2**31:
        return x
    return csr_tensor(x.crow_indices().int(), x.col_indices().int(), x.values(), x.shape)


def _mapped(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A dense or CSR matrix with a function of its stored entries."""
    if x.layout == torch.strided:
        return function(x)
    return csr_tensor(x.crow_indices(), x.col_indices(), function(x.values()), x.shape)


def _largest_magnitude(values: Tensor) -> float:
    """The largest |v|; NaN or infinite if any entry is. In parts, because torch copies transposed layouts."""
    extremes = [extreme for part in torch.split(values, 2**16) if part.numel() for extreme in part.aminmax()]
    return float(torch.stack(extremes).abs().max()) if extremes else 0.0
