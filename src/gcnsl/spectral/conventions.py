"""Conventions that SC, ESC and ESC-ANCH share: rank, sign and scale of the columns of F, and saved tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from gcnsl.checks import check_choice

Scale = Literal["unit", "sqrt-n"]

# Entries this close to the largest of their column count as equally large, so that rounding never decides a sign.
_NEAR_LARGEST = 1 - 1e-6


def inverse_sqrt(values: Tensor) -> Tensor:
    """v^-1/2, and 0 where v is not positive, which gives zero features to a row that is similar to no other row."""
    return torch.where(values > 0, torch.where(values > 0, values, 1.0).rsqrt(), 0.0)


def inverse(eigenvalues: Tensor) -> Tensor:
    """1 / λ, and 0 for zeros."""
    return torch.where(eigenvalues > 0, 1 / eigenvalues, 0.0)


def padded(columns: Tensor, count: int) -> Tensor:
    """Append zeros along the last axis: G has at most n components, but more may be requested."""
    return torch.nn.functional.pad(columns, (0, count - columns.shape[-1]))


def column_signs(features: Tensor) -> Tensor:
    """±1 for each column of F (n × c), such that its first entry of largest magnitude becomes positive."""
    lowest, highest = features.aminmax(dim=0)
    signs = torch.where(highest >= -lowest, 1.0, -1.0).to(torch.float64)
    bound = _NEAR_LARGEST * torch.maximum(highest, -lowest)
    for column in torch.nonzero(torch.minimum(highest, -lowest) > bound).flatten():
        entries = features[:, column]
        signs[column] = entries[entries.abs() >= bound[column]][0].sign()
    return signs


def scale_factor(scale: Scale, n: int) -> float:
    """The factor for unit columns: 1, or √n, which gives entries of about one for any n."""
    return math.sqrt(n) if check_choice("scale", scale, get_args(Scale)) == "sqrt-n" else 1.0


def restored(
    tensors: Mapping[str, Tensor],
    shapes: Mapping[str, tuple[int, ...]],
    device: torch.device,
    dtype: torch.dtype = torch.float64,
) -> Iterator[Tensor]:
    """Saved tensors of these shapes, contiguous; raises a ValueError if one is not finite, or not of this type."""
    for name, shape in shapes.items():
        tensor = tensors[name]
        if tensor.shape != shape or tensor.dtype != dtype or not bool(tensor.isfinite().all()):
            raise ValueError(
                f"{name} ({tensor.dtype}, {tuple(tensor.shape)}) is not a finite tensor of {dtype} and {shape}"
            )
        yield tensor.to(device).contiguous()
