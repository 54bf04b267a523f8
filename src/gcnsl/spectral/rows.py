"""A feature matrix of any kind, read and checked, with float64 products in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.checks import as_array
from gcnsl.errors import InputError
from gcnsl.execution import torch_threads_for
from gcnsl.sparse import SPARSE_SHARE, to_scipy

Floats = NDArray[np.float64]

BLOCK_BYTES = 2**25
"""Approximate size of a row block, and of the results computed from it."""
HELD_BYTES = 2**29
"""A dense float32 matrix is kept in float64 if that takes at most so much memory."""
_ORDINARY = 1e-60, 1e60
"""Products of up to four entries within these bounds neither overflow nor vanish in float64."""


class Rows:
    """X (n × d) as a NumPy array or a SciPy CSR matrix. All products are in float64; a CSR matrix is never made dense.

    Attributes:
        x: X, in float64 if it is sparse or small.
        sparse: Whether x is CSR.
        source: An empty array or tensor of X's kind, dtype and device, in which features are returned.
    """

    def __init__(self, x: Any, source: Any) -> None:
        self.x, self.source, self.sparse = x, source, scipy.sparse.issparse(x)
        if self.sparse or x.size * 8 <= HELD_BYTES:
            self.x = x.astype(np.float64, copy=False)
        self.shape: tuple[int, int] = x.shape

    def blocks(self, width: int) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows in float64, so small that ``width`` more numbers for each row fit into memory, too."""
        n, d = self.shape
        entries = math.ceil(2 * self.x.nnz / n) if self.sparse else d
        step = max(1, BLOCK_BYTES // (8 * max(width, entries)))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self.x[rows].astype(np.float64, copy=False)

    def work(self, count: int) -> int:
        """The multiply-adds that finding ``count`` components takes, roughly: each product with X is made twice."""
        return 2 * int(self.x.nnz if self.sparse else self.x.size) * (4 * count + 64)

    def matmul(self, right: Any) -> Any:
        """X · right: (d × k) → (n × k)."""
        if self.sparse:
            return self.x @ right
        return np.concatenate([block @ right for _, block in self.blocks(1)])

    def t_matmul(self, left: Floats) -> Floats:
        """Xᵀ · left: (n × k) → (d × k)."""
        product: Floats = (
            self.x.T @ left if self.sparse else sum(block.T @ left[part] for part, block in self.blocks(1))
        )
        return product

    def squared_norms(self) -> Floats:
        """‖x_i‖² (n)."""
        return np.concatenate([(block * block).sum(axis=1) for _, block in self.blocks(1)])

    def negative_rows(self) -> NDArray[np.bool_]:
        """Which rows have a negative entry (n)."""
        return np.concatenate([(block < 0).sum(axis=1) > 0 for _, block in self.blocks(1)])

    def take(self, index: NDArray[np.int64]) -> Rows:
        """The rows with these numbers as a new matrix."""
        return Rows(self.x[index], self.source)

    def empty(self, columns: int) -> NDArray[Any]:
        """Room for results with a row for each of X, in the precision of X."""
        return np.empty((self.shape[0], columns), np.float64 if self.source.itemsize == 8 else np.float32)

    def deliver(self, features: NDArray[Any]) -> Any:
        """Features as an array or a tensor, whichever X was, with its dtype and device."""
        if isinstance(self.source, Tensor):
            return torch.from_numpy(features).to(self.source)
        return features.astype(self.source.dtype, copy=False)


def as_rows(x: Any) -> Rows:
    """Check a feature matrix and wrap it, without a copy where its layout allows.

    It is a NumPy array (or anything that converts to one), a SciPy sparse matrix or array, or a torch tensor, dense or
    sparse. Error messages call it X. Dense matrices become CSR if most entries are zero, as in a bag of words.
    """
    if not isinstance(x, Tensor) and not scipy.sparse.issparse(x):
        x = as_array(x, "X")
    shape = tuple(x.shape)
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"X has shape {shape}: it must be two-dimensional with at least one row and one column")
    if x.dtype.is_complex if isinstance(x, Tensor) else x.dtype.kind not in "biuf":
        raise InputError(f"X has dtype {x.dtype}: features must be real numbers")
    with torch_threads_for(math.prod(shape)):
        if isinstance(x, Tensor):
            dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
            source: Any = torch.empty(0, dtype=dtype, device=x.device)
            x = x.detach().to("cpu", torch.promote_types(dtype, torch.float32))
            x = x.numpy() if x.layout == torch.strided else to_scipy(x)
        else:
            source = np.empty(0, x.dtype.newbyteorder("=") if x.dtype.char in "efd" else np.float64)
            x = x.astype(np.promote_types(source.dtype, np.float32), copy=False)
        x = _read(x)
        _check_values(x.data if scipy.sparse.issparse(x) else x)
        return Rows(x, source)


def _read(x: Any) -> Any:
    """A dense array, or CSR with sorted and distinct entries."""
    if scipy.sparse.issparse(x):
        x = scipy.sparse.csr_array(x)
        if not x.has_canonical_format:  # the caller's matrix is not changed
            x = x.copy()
            x.sum_duplicates()
        return x
    stored = int(np.count_nonzero(x))
    if stored > SPARSE_SHARE * x.size:
        return x
    place, (n, d) = np.flatnonzero(x != 0), x.shape  # SciPy takes four times as long
    start, value = np.searchsorted(place, np.arange(0, n * d + 1, d)), np.ascontiguousarray(x).reshape(-1)[place]
    return scipy.sparse.csr_array((value, place % d, start), shape=x.shape)


def _check_values(values: NDArray[Any]) -> None:
    """Check that entries are finite, and that their squares neither overflow nor vanish."""
    if not values.size:
        return
    largest = float(max(values.max(), -values.min()))
    if not math.isfinite(largest):
        raise InputError("X holds a NaN or an infinite entry: replace or remove such entries first")
    if largest and not _ORDINARY[0] <= largest <= _ORDINARY[1]:
        raise InputError(
            f"X has entries up to {largest:.1e}, which must be between 1e-60 and 1e60, since they are squared: "
            f"divide X by {largest:.1e}"
        )
