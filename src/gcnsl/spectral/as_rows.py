"""Reading a feature matrix: any kind of array in, checked rows out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.spectral.rows import CSR_ENTRY_BYTES, HELD_BYTES, Array, DenseRows, Rows, SparseRows, as_tensor

# A CSR product costs about eight times a dense one for each stored entry.
_SPARSE_SHARE = 1 / 8


def as_rows(x: Any, *, name: str = "X") -> Rows:
    """Check a feature matrix and wrap it, without a copy where its layout allows.

    Args:
        x: NumPy array (or what converts to one), SciPy sparse matrix or array, torch tensor, dense or sparse.
        name: how to call it in an error.
    """
    shape = tuple(x.shape) if hasattr(x, "shape") else np.shape(x)
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"{name} has shape {shape}: it must be two-dimensional with at least one row and one column")
    if isinstance(x, Tensor):
        rows = _from_tensor(x.detach(), name)
    elif scipy.sparse.issparse(x):
        rows = _from_csr(_canonical(x, name), as_numpy=True)
    else:
        rows = _from_dense(_real(np.asarray(x), name), as_numpy=True)
    values = rows.value if isinstance(rows, SparseRows) else rows.values
    # The sum is finite only if all entries are; it may also overflow, so then look at each, some at a time.
    if not (
        math.isfinite(float(values.sum())) or all(bool(part.isfinite().all()) for part in torch.split(values, 2**16))
    ):
        raise InputError(f"{name} holds a NaN or an infinite entry: replace such entries before taking features of it")
    return rows


def _from_tensor(x: Tensor, name: str) -> DenseRows | SparseRows:
    if x.is_complex():
        raise InputError(f"{name} has dtype {x.dtype}: features must be real numbers")
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    if x.layout == torch.strided:
        return _from_dense(x.numpy(), as_numpy=False) if _in_numpy(x) else DenseRows(x, as_numpy=False)
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    if _in_numpy(x):
        parts = x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()
        return _from_csr(_canonical(scipy.sparse.csr_array(parts, shape=tuple(x.shape)), name), as_numpy=False)
    return SparseRows(x.crow_indices(), x.col_indices(), x.values(), x.shape[1], as_numpy=False)


def _in_numpy(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def _real(x: Array, name: str) -> Array:
    """Bring an array to a native float dtype; whole numbers and booleans become float64."""
    if x.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {x.dtype}: features must be real numbers")
    keep = x.dtype.kind == "f" and x.dtype.itemsize in (2, 4, 8)
    return x.astype(x.dtype.newbyteorder("=") if keep else np.float64, copy=False)


def _canonical(x: Any, name: str) -> Any:
    """CSR with every entry once, leaving the caller's matrix as it is."""
    csr = x.tocsr()
    csr = csr.astype(_real(csr.data[:0], name).dtype, copy=False)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _from_csr(csr: Any, *, as_numpy: bool) -> SparseRows:
    # MKL's products take 32-bit indices; torch would convert wider ones for every product.
    whole = np.int32 if max(csr.nnz, csr.shape[1]) < 2**31 else np.int64
    start, column = (as_tensor(part.astype(whole, copy=False)) for part in (csr.indptr, csr.indices))
    return SparseRows(start, column, as_tensor(csr.data), csr.shape[1], as_numpy=as_numpy)


def _from_dense(x: Array, *, as_numpy: bool) -> DenseRows | SparseRows:
    """Read a dense array, as CSR if it is mostly zeros (bags of words usually are)."""
    n, d = x.shape
    stored = int(np.count_nonzero(x))
    if stored > _SPARSE_SHARE * x.size or stored * CSR_ENTRY_BYTES > HELD_BYTES:
        return DenseRows(as_tensor(x), as_numpy=as_numpy)
    place = np.flatnonzero(x != 0)
    start = np.searchsorted(place, np.arange(0, n * d + 1, d)).astype(np.int32)
    column = (place % d).astype(np.int32)
    value = np.ascontiguousarray(x).reshape(-1)[place]
    return SparseRows(as_tensor(start), as_tensor(column), as_tensor(value), d, as_numpy=as_numpy)
