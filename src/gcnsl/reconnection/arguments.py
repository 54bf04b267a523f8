"""What the operator requires of its arguments, and the messages of the errors it raises."""

import math
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from gcnsl.checks import check_epsilon
from gcnsl.errors import InputError
from gcnsl.reconnection.problem import Problem, Threshold

ROUNDING = {torch.bfloat16: 8e-3, torch.float16: 1e-3, torch.float32: 1e-6, torch.float64: 1e-14}
"""By dtype, how far below 1 rounding can leave the similarity of a normalised row with itself."""
UNIT_TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float32: 1e-4, torch.float64: 1e-4}
"""By dtype, how far from 1 the squared norm of a row may be."""


def computed_in(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the computation for inputs of this dtype: float32 for half precision."""
    return torch.promote_types(dtype, torch.float32)


@overload
def threshold_of(epsilon: float, dtype: torch.dtype) -> float: ...
@overload
def threshold_of(epsilon: float | Tensor, dtype: torch.dtype) -> Threshold: ...
def threshold_of(epsilon: float | Tensor, dtype: torch.dtype) -> Threshold:
    """Check ε and return the smallest similarity that is kept, given the dtype of the input z.

    An ε on a GPU stays there, and is not checked, since that would make the host wait.
    """
    least = torch.finfo(computed_in(dtype)).tiny  # not 0: a pair with a similarity of 0 has no weight
    most = 1 - ROUNDING[dtype]
    if isinstance(epsilon, Tensor) and epsilon.is_cuda:
        return epsilon.detach().clamp(least, most)
    return min(max(check_epsilon(epsilon.item() if isinstance(epsilon, Tensor) else epsilon), least), most)


def check_arguments(z: Tensor, h: Tensor, keys: Tensor | None) -> None:
    """Check all that does not depend on values, which costs nothing and works while `torch.compile` traces."""
    check_matrix("z", z)
    nodes, name = (z, "z") if keys is None else (keys, "keys")
    if keys is not None:
        check_matrix("keys", keys)
        _check_compatible("keys", keys, z)
        if keys.shape[1] != z.shape[1]:
            raise InputError(
                f"keys has {keys.shape[1]} columns and z has {z.shape[1]}: both must have the same number of columns"
            )
    check_matrix("h", h)
    _check_compatible("h", h, z)
    if h.shape[0] != nodes.shape[0]:
        raise InputError(f"h has {h.shape[0]} rows and {name} has {nodes.shape[0]}: both must have one row per node")


def check_matrix(name: str, rows: Tensor) -> None:
    """Check that an argument is a non-empty floating-point matrix."""
    if not isinstance(rows, Tensor):
        raise InputError(f"{name}({type(rows).__name__}) must be a torch.Tensor: call torch.as_tensor({name})")
    if rows.dim() != 2 or 0 in rows.shape:
        raise InputError(f"{name} has shape {tuple(rows.shape)}: it must be a non-empty matrix with one row per node")
    if rows.dtype not in ROUNDING:
        raise InputError(f"{name} has dtype {rows.dtype}: it must be floating-point, call {name}.float()")


def check_values(problem: Problem) -> None:
    """Check that the rows of z and keys have norm 1 or are zero, and that h is finite."""
    if problem.known is None:
        check_unit_rows("z", problem.z, problem.tolerance)
    if not problem.square:
        check_unit_rows("keys", problem.keys, problem.tolerance)
    check_finite("h", problem.h)


def check_unit_rows(name: str, rows: Tensor, tolerance: float) -> None:
    """Check that every row has norm 1 or is zero. On a GPU, this waits for the device."""
    rows = rows.detach()
    if rows.device.type == "cpu":  # waking torch's threads takes longer than this
        squared: Any = np.einsum("ij,ij->i", rows.numpy(), rows.numpy())
    else:
        squared = rows.square().sum(dim=1)
    bad = ~(abs(squared - 1) <= tolerance) & (squared != 0)
    if bool(bad.any()):
        raise unit_error(name, rows, int(bad.nonzero()[0][0]))


def check_finite(name: str, rows: Tensor) -> None:
    """Check that no entry is NaN or infinite."""
    with np.errstate(all="ignore"):  # the sum of finite entries may overflow, so the entries have the last word
        rows = rows.detach()
        total = float(rows.numpy().sum()) if rows.device.type == "cpu" else float(rows.sum())
    if not math.isfinite(total) and not bool(rows.isfinite().all()):
        raise finite_error(name, rows)


def unit_error(name: str, rows: Tensor, row: int) -> InputError:
    """Return the error for a row that is not a unit vector."""
    rows = rows.detach()
    if not bool(rows[row].isfinite().all()):
        return finite_error(name, rows)
    norm = float(rows[row].double().norm())
    return InputError(
        f"{name}[{row}] has norm {norm:.6g}: rows must have norm 1 or be 0, call torch.nn.functional.normalize({name})"
    )


def finite_error(name: str, rows: Tensor) -> InputError:
    """Return the error for a matrix with NaN or infinite entries, which names the first of them."""
    rows = rows.detach()
    row, column = (~rows.isfinite()).nonzero()[0].tolist()
    return InputError(f"{name}[{row}, {column}] is {float(rows[row, column])}: all entries must be finite")


def _check_compatible(name: str, rows: Tensor, z: Tensor) -> None:
    if rows.device != z.device:
        raise InputError(f"{name} is on {rows.device} and z on {z.device}: both must be on one device, call .to()")
    if computed_in(rows.dtype) != computed_in(z.dtype):
        raise InputError(
            f"{name} has dtype {rows.dtype} and z has {z.dtype}: both must be float64 or neither, "
            f"call {name}.to(z.dtype)"
        )
