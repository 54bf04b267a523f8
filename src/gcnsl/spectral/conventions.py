"""What SC, ESC and ESC-ANCH agree on: rank, sign and scale of the columns of F, and how bad arguments are refused."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.spectral.eigen import RANK_TOLERANCE

Scale = Literal["unit", "sqrt-n"]

# Entries this close to the largest of their column count as equally large, so that rounding decides no sign.
_NEAR_LARGEST = 1 - 1e-6


def inverse_sqrt(values: Tensor) -> Tensor:
    """v^-1/2, and 0 where v is not positive: a row without features, or alike to no row, has zero features."""
    return torch.where(values > 0, torch.where(values > 0, values, 1.0).rsqrt(), 0.0)


def inverse_power(eigenvalues: Tensor, power: float) -> Tensor:
    """λ^-power, and 0 for components beyond the rank: their columns of F are zero, whatever the data are."""
    present = eigenvalues > RANK_TOLERANCE * eigenvalues[:1]
    return torch.where(present, torch.where(present, eigenvalues, 1.0) ** -power, 0.0)


def within_rank(eigenvalues: Tensor) -> Tensor:
    """The eigenvalues of G with those beyond the rank as exact zeros."""
    return torch.where(eigenvalues > RANK_TOLERANCE * eigenvalues[:1], eigenvalues, 0.0)


def padded(columns: Tensor, count: int) -> Tensor:
    """Append zeros along the last axis: there are no more than n components, and more may be asked for."""
    return torch.nn.functional.pad(columns, (0, count - columns.shape[-1]))


def column_signs(features: Tensor) -> Tensor:
    """±1 for every column of F (n × c): its entry of largest magnitude, the first of them, is to be positive."""
    lowest, highest = features.aminmax(dim=0)
    signs = torch.where(highest >= -lowest, 1.0, -1.0).to(torch.float64)
    bound = _NEAR_LARGEST * torch.maximum(highest, -lowest)
    for column in torch.nonzero(torch.minimum(highest, -lowest) > bound).flatten():
        entries = features[:, column]
        signs[column] = entries[entries.abs() >= bound[column]][0].sign()
    return signs


def scale_factor(scale: Scale, n: int) -> float:
    """What unit columns are multiplied by: 1, or √n, which gives entries around one at any n."""
    if scale not in get_args(Scale):
        raise InputError(f"scale({scale!r}) must be one of {get_args(Scale)}")
    return math.sqrt(n) if scale == "sqrt-n" else 1.0


def check_count(name: str, value: Any) -> int:
    """Return a whole number of at least one."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name}({value!r}) must be a whole number >= 1")
    return int(value)
