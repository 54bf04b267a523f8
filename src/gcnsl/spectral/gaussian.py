"""SC: spectral features of the fully connected graph with Gaussian similarities, the method ESC is measured against.

    S_ij = exp(-‖x_i - x_j‖² / 2σ²)        d_i = Σ_j s_ij        G = D^-1/2 S D^-1/2 = F Λ Fᵀ

An unseen row x with similarities s to the training rows has the features (Nyström's extension)

    f = d^-1/2 s W        where d = Σ_j s_j and W = D^-1/2 F Λ⁻¹,

which for a training row is its row of G F Λ⁻¹ = F.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.spectral.conventions import (
    Scale,
    check_count,
    column_signs,
    inverse_power,
    inverse_sqrt,
    padded,
    scale_factor,
    within_rank,
)
from gcnsl.spectral.eigen import Multiply, leading_eigenpairs
from gcnsl.spectral.reading import as_rows
from gcnsl.spectral.rows import Rows

# Up to this size S is kept; beyond, its row blocks are computed again for every product.
_HELD_BYTES = 2**32
# The median distance is taken over the pairs of at most this many rows.
_MEDIAN_ROWS = 1000


def sc(X: Any, n_components: int, *, sigma: float | None = None, scale: Scale = "unit") -> Any:
    """Spectral clustering features: the leading eigenvectors of G = D^-1/2 S D^-1/2, S Gaussian. O(n²) time.

    Args:
        X: features (n × d), dense or CSR, NumPy, SciPy or torch.
        n_components: c. Columns beyond the rank of G are zero.
        sigma: σ; None takes the median distance between rows (of 1000 evenly spaced ones, if there are more).
        scale: ``"unit"`` (orthonormal columns) or ``"sqrt-n"`` (those times √n).

    Returns:
        F (n × c), of X's kind, dtype and device.
    """
    rows = as_rows(X)
    return rows.deliver(fit_sc(rows, n_components, sigma=sigma, scale=scale)[0])


@dataclass(frozen=True)
class GaussianMap:
    """x ↦ f = d^-1/2 s W.

    Attributes:
        weight: W (n × c), times the scale of F.
        training: the rows that similarities are taken to.
        sigma: σ.
        eigenvalues: of G (c), falling; zero beyond the rank.
    """

    weight: Tensor
    training: Rows
    sigma: float
    eigenvalues: Tensor

    def __call__(self, rows: Rows) -> Tensor:
        """Features of any rows (those of the training rows among them)."""
        features = rows.empty(self.weight.shape[1])
        for part, similarity in _similarities(rows, self.training, self.sigma):
            features[part] = inverse_sqrt(similarity.sum(1))[:, None] * (similarity @ self.weight)
        return features


def fit_sc(rows: Rows, n_components: int, *, sigma: float | None, scale: Scale) -> tuple[Tensor, GaussianMap]:
    """F of the training rows, and the map that extends it."""
    count, factor = check_count("n_components", n_components), scale_factor(scale, rows.shape[0])
    sigma = median_distance(rows) if sigma is None else _check_sigma(sigma)
    normalised, inverse_root = _normalised_similarity(rows, sigma)
    eigenvalues, vectors = leading_eigenpairs(normalised, rows.shape[0], count, device=rows.device)
    eigenvalues, vectors = padded(within_rank(eigenvalues), count), padded(vectors, count)
    vectors = vectors * ((eigenvalues > 0) * column_signs(vectors) * factor)
    weight = inverse_root[:, None] * vectors * inverse_power(eigenvalues, 1)
    return vectors.to(rows.dtype), GaussianMap(weight, rows, sigma, eigenvalues)


def median_distance(rows: Rows) -> float:
    """The median of the distances between distinct rows, zeros left out; 1 where all rows are the same."""
    n = rows.shape[0]
    sample = rows.take(torch.arange(min(n, _MEDIAN_ROWS), device=rows.device) * n // min(n, _MEDIAN_ROWS))
    squared = torch.cat([block for _, block in _squared_distances(sample, sample)])
    above = squared.triu(1)
    # Rounding leaves about 1e-16 of ‖x‖² in the distance of equal rows.
    apart = above[above > 1e-12 * squared.max()]
    return float(apart.median().sqrt()) if len(apart) else 1.0


def _check_sigma(sigma: Any) -> float:
    if not isinstance(sigma, Real) or not 0 < float(sigma) < float("inf"):
        raise InputError(f"sigma({sigma!r}) must be a positive number, or None for the median distance")
    return float(sigma)


def _squared_distances(rows: Rows, others: Rows) -> Iterator[tuple[slice, Tensor]]:
    """‖x_i - y_j‖² as row blocks (b × n)."""
    other_norms = others.squared_norms()
    norms = rows.squared_norms()
    for part in rows.slices(max(others.shape)):
        inner = others.matmul(rows.block(part).to_dense().T.contiguous()).T
        yield part, (norms[part, None] + other_norms - 2 * inner).clamp_(min=0)


def _similarities(rows: Rows, others: Rows, sigma: float) -> Iterator[tuple[slice, Tensor]]:
    """S as row blocks (b × n)."""
    for part, squared in _squared_distances(rows, others):
        yield part, squared.div_(-2 * sigma**2).exp_()


def _normalised_similarity(rows: Rows, sigma: float) -> tuple[Tensor | Multiply, Tensor]:
    """G, as a matrix where it can be kept and as a product where it cannot, and D^-1/2 (n)."""
    n = rows.shape[0]
    if n * n * 8 <= _HELD_BYTES:
        matrix = torch.empty(n, n, dtype=torch.float64, device=rows.device)
        for part, similarity in _similarities(rows, rows, sigma):
            matrix[part] = similarity
        inverse_root = matrix.sum(1).rsqrt_()
        return matrix.mul_(inverse_root[:, None]).mul_(inverse_root), inverse_root
    inverse_root = torch.cat([similarity.sum(1) for _, similarity in _similarities(rows, rows, sigma)]).rsqrt_()

    def multiply(v: Tensor) -> Tensor:
        scaled = inverse_root[:, None] * v
        return inverse_root[:, None] * torch.cat([part @ scaled for _, part in _similarities(rows, rows, sigma)])

    return multiply, inverse_root
