"""Read a feature matrix: any kind of array becomes checked :class:`~gcnsl.spectral.rows.Rows`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.sparse import SPARSE_SHARE, as_tensor, to_scipy
from gcnsl.spectral.rows import CSR_ENTRY_BYTES, HELD_BYTES, DenseRows, Rows, SparseRows

Array = npt.NDArray[Any]

# Products of up to four entries within these bounds neither overflow nor vanish in float64.
_ORDINARY = 1e-60, 1e60


def as_rows(x: Any, *, name: str = "X") -> Rows:
    """Check a feature matrix and wrap it, without a copy where its layout allows.

    Args:
        x: NumPy array (or anything that converts to one), SciPy sparse matrix or array, or torch tensor, dense or
            sparse.
        name: What error messages call it.
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
    largest = _largest_magnitude(rows.values)
    if not math.isfinite(largest):
        raise InputError(f"{name} holds a NaN or an infinite entry: replace or remove such entries first")
    if largest and not _ORDINARY[0] <= largest <= _ORDINARY[1]:
        rows.magnitude = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return rows


def _largest_magnitude(values: Tensor) -> float:
    """The largest |v|; NaN or infinite if any entry is. In parts, because torch copies transposed layouts."""
    extremes = [extreme for part in torch.split(values, 2**16) if part.numel() for extreme in part.aminmax()]
    return float(torch.stack(extremes).abs().max()) if extremes else 0.0


def _from_tensor(x: Tensor, name: str) -> DenseRows | SparseRows:
    if x.is_complex():
        raise InputError(f"{name} has dtype {x.dtype}: features must be real numbers")
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    in_numpy = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    if x.layout == torch.strided:
        return _from_dense(x.numpy(), as_numpy=False) if in_numpy else DenseRows(x, as_numpy=False)
    if in_numpy:
        return _from_csr(_canonical(to_scipy(x), name), as_numpy=False)
    x = x if x.layout == torch.sparse_csr else x.to_sparse_csr()
    return SparseRows(x.crow_indices(), x.col_indices(), x.values(), x.shape[1], as_numpy=False)


def _real(x: Array, name: str) -> Array:
    """Convert an array to a native float dtype; integers and booleans become float64."""
    if x.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {x.dtype}: features must be real numbers")
    keep = x.dtype.kind == "f" and x.dtype.itemsize in (2, 4, 8)
    return x.astype(x.dtype.newbyteorder("=") if keep else np.float64, copy=False)


def _canonical(x: Any, name: str) -> Any:
    """CSR with sorted columns and no duplicate entries; the caller's matrix is not changed."""
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
    """Read a dense array, as CSR if most entries are zero, as in a bag of words; SciPy takes four times as long."""
    n, d = x.shape
    stored = int(np.count_nonzero(x))
    if stored > SPARSE_SHARE * x.size or stored * CSR_ENTRY_BYTES > HELD_BYTES:
        return DenseRows(as_tensor(x), as_numpy=as_numpy)
    place = np.flatnonzero(x != 0)
    start = np.searchsorted(place, np.arange(0, n * d + 1, d)).astype(np.int32)
    column = (place % d).astype(np.int32)
    value = np.ascontiguousarray(x).reshape(-1)[place]
    return SparseRows(as_tensor(start), as_tensor(column), as_tensor(value), d, as_numpy=as_numpy)
