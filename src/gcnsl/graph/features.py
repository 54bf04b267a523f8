"""Node features: a numeric matrix with one row per node."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.graph.arrays import as_array
from gcnsl.sparse import from_scipy, to_scipy


def check_features(x: Any, name: str = "x") -> Tensor:
    """Check features and convert them to float32 (n × d, both at least 1).

    Dense input gives a dense tensor, sparse input a torch CSR tensor.

    Raises:
        InputError: If the shape is wrong or a value is not a finite number in float32.
    """
    if isinstance(x, Tensor) and x.layout != torch.strided:
        x = to_scipy(x.cpu())
    if sp.issparse(x):
        matrix = sp.csr_array(x, dtype=np.float32)
        _check_shape(matrix.shape, name)
        if not np.isfinite(matrix.data.sum(dtype=np.float64)):
            stored = matrix.tocoo()
            bad = int(np.flatnonzero(~np.isfinite(stored.data))[0])
            raise _not_finite(stored.data[bad], int(stored.row[bad]), int(stored.col[bad]), name)
        return from_scipy(matrix)
    values = as_array(x, name)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {values.dtype}: features must be numbers; encode or drop the others")
    _check_shape(values.shape, name)
    with np.errstate(over="ignore"):  # a float64 beyond the range of float32 becomes inf and is refused below
        dense = np.ascontiguousarray(values, dtype=np.float32)
    if not np.isfinite(dense.sum(dtype=np.float64)):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(dense))[0])
        raise _not_finite(values[row, column], row, column, name)
    return torch.from_numpy(dense)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise InputError(f"{name} has shape {shape}: give a matrix with one row per node")
    if shape[0] == 0:
        raise InputError(f"{name} has shape {shape}: the graph is empty; give at least one node")
    if shape[1] == 0:
        raise InputError(f"{name} has shape {shape}: nodes have no features; give at least one numeric column")


def _not_finite(value: Any, row: int, column: int, name: str) -> InputError:
    return InputError(f"{name}[{row}, {column}] is {value}: features must be finite in float32; fill, clip or drop it")
