"""What the operator asks of its arguments, and the sentences it answers with when they fall short."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsl.errors import InputError

ROUNDING = {torch.bfloat16: 8e-3, torch.float16: 1e-3, torch.float32: 1e-6, torch.float64: 1e-14}
"""How far below 1 rounding can leave the similarity of a normalised row with itself, by the type of the rows."""
UNIT_TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-4, torch.float64: 1e-4}
"""How far from 1 the squared norm of a row may be."""


def computed_in(dtype: torch.dtype) -> torch.dtype:
    """Return the type that inputs of this type are computed in: half precision is computed in float32."""
    return torch.promote_types(dtype, torch.float32)


def check_arguments(z: Tensor, h: Tensor, epsilon: float, keys: Tensor | None) -> None:
    """Check what can be told without reading a value: free, and safe where torch.compile traces."""
    check_rows_argument("z", z)
    nodes, name = (z, "z") if keys is None else (keys, "keys")
    if keys is not None:
        check_rows_argument("keys", keys)
        _check_same("keys", keys, z)
        if keys.shape[1] != z.shape[1]:
            raise InputError(
                f"keys has {keys.shape[1]} columns and z has {z.shape[1]}: both must lie in the same space"
            )
    check_rows_argument("h", h)
    _check_same("h", h, z)
    if h.shape[0] != nodes.shape[0]:
        raise InputError(f"h has {h.shape[0]} rows and {name} has {nodes.shape[0]}: one row of h belongs to each")
    check_epsilon(epsilon)


def check_rows_argument(name: str, rows: Tensor) -> None:
    """Check that an argument is a non-empty floating-point matrix."""
    if not isinstance(rows, Tensor):
        raise InputError(f"{name}({type(rows).__name__}) must be a torch.Tensor: torch.as_tensor makes one of an array")
    if rows.dim() != 2 or 0 in rows.shape:
        raise InputError(f"{name} has shape {tuple(rows.shape)}: it must be a matrix with one row for each node")
    if rows.dtype not in ROUNDING:
        raise InputError(f"{name} has dtype {rows.dtype}: it must be floating-point, call {name}.float()")


def check_epsilon(epsilon: float) -> None:
    """Check that ε lies in (0, 1]."""
    if not isinstance(epsilon, float | int) or isinstance(epsilon, bool):
        raise InputError(f"epsilon({epsilon!r}) must be a Python number")
    if not 0 < epsilon <= 1:
        raise InputError(f"epsilon({epsilon}) must be > 0 and <= 1: it is the smallest cosine similarity that is kept")


def check_unit_rows(name: str, rows: Tensor, tolerance: float) -> None:
    """Check that every row has norm 1 or is zero; one pass over the rows and, on a GPU, one wait for the answer."""
    squared = _squared_norms(rows)
    bad = ~(abs(squared - 1) <= tolerance) & (squared != 0)
    if bool(bad.any()):
        raise unit_error(name, rows, int(bad.nonzero()[0][0]))


def check_finite(name: str, rows: Tensor) -> None:
    """Check that no entry is NaN or infinite; one pass over the entries."""
    with np.errstate(all="ignore"):  # a sum may overflow where no entry does: then the entries decide
        rows = rows.detach()
        total = float(rows.numpy().sum()) if rows.device.type == "cpu" else float(rows.sum())
    if not math.isfinite(total) and not bool(rows.isfinite().all()):
        raise finite_error(name, rows)


def _squared_norms(rows: Tensor) -> Any:
    """Return the squared norm of each row: by NumPy on a CPU, since waking torch's threads for this takes longer."""
    rows = rows.detach()
    return np.einsum("ij,ij->i", rows.numpy(), rows.numpy()) if rows.device.type == "cpu" else rows.square().sum(dim=1)


def unit_error(name: str, rows: Tensor, row: int) -> InputError:
    """Say which row is not a unit vector."""
    rows = rows.detach()
    if not bool(rows[row].isfinite().all()):
        return finite_error(name, rows)
    norm = float(rows[row].double().norm())
    return InputError(
        f"{name}[{row}] has norm {norm:.6g}: rows must have norm 1 or be 0, call torch.nn.functional.normalize({name})"
    )


def finite_error(name: str, rows: Tensor) -> InputError:
    """Say where the first NaN or infinity is."""
    rows = rows.detach()
    row, column = (~rows.isfinite()).nonzero()[0].tolist()
    return InputError(
        f"{name}[{row}, {column}] is {float(rows[row, column])}: entries must be finite; look where it was made"
    )


def _check_same(name: str, rows: Tensor, z: Tensor) -> None:
    if rows.device != z.device:
        raise InputError(f"{name} is on {rows.device} and z on {z.device}: both must be on one device, call .to()")
    if computed_in(rows.dtype) != computed_in(z.dtype):
        raise InputError(
            f"{name} has dtype {rows.dtype} and z has {z.dtype}: both must be float64 or none, call {name}.to(z.dtype)"
        )
