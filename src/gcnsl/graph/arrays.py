"""Arrays in whatever form the caller has them, and node features."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.sparse import from_scipy, to_scipy

LARGEST_FLOAT = float(np.finfo(np.float32).max)
"""Features and weights are stored as float32."""


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Convert anything array-like to a NumPy array; ``name`` is for the message if that fails."""
    try:
        if not isinstance(values, Tensor):
            return np.asarray(values)
        values = values.detach().cpu()
        array: NDArray[Any] = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
        return array
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not an array ({error}): give NumPy, torch or SciPy data") from error


def check_features(x: Any) -> Tensor:
    """Check features and convert them to float32 (n × d, n at least 1): dense to dense, sparse to torch CSR."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        x = to_scipy(x.cpu())
    values: Any = _canonical(sp.csr_array(x)) if sp.issparse(x) else as_array(x, "x")
    if values.dtype.kind not in "biuf":
        raise InputError(f"x has dtype {values.dtype}: features must be numbers; encode or drop the others")
    if len(values.shape) != 2:
        raise InputError(f"x has shape {values.shape}: give a matrix with one row per node")
    if values.shape[0] == 0:
        raise InputError(f"x has shape {values.shape}: the graph is empty; give at least one node")
    with np.errstate(over="ignore"):  # a float64 beyond the range of float32 becomes inf and is refused below
        single = values.astype(np.float32, copy=False)
    stored = single.data if sp.issparse(single) else single
    if not np.isfinite(stored.sum(dtype=np.float64)):
        entries = sp.coo_array(single)
        bad = np.flatnonzero(~np.isfinite(entries.data))[0]
        row, column = entries.row[bad], entries.col[bad]
        value = values[row, column]
        raise InputError(f"x[{row}, {column}] is {value}: features must be finite in float32; fill, clip or drop it")
    return from_scipy(single) if sp.issparse(single) else torch.from_numpy(np.ascontiguousarray(single))


def _canonical(matrix: sp.csr_array) -> sp.csr_array:
    """The matrix with sorted columns in each row and without repeated entries, which are added, as SciPy reads them."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's stays as it is
        matrix.sum_duplicates()
    return matrix
