"""SC: spectral features of the complete graph with Gaussian similarities, the classical method ESC is compared with.

    S_ij = exp(-‖x_i - x_j‖² / 2σ²)        d_i = Σ_j s_ij        G = D^-1/2 S D^-1/2 = F Λ Fᵀ

The features of any row x with similarities s to the training rows are (Nyström's extension)

    f = d^-1/2 s W        where d = Σ_j s_j and W = D^-1/2 F Λ⁻¹.

For a training row this is its row of G F Λ⁻¹ = F.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcnsl.checks import check_number, check_whole
from gcnsl.cores import threads_for
from gcnsl.spectral.conventions import Scale, column_signs, inverse, inverse_sqrt, padded, restored, scale_factor
from gcnsl.spectral.eigen import Multiply, leading_eigenpairs
from gcnsl.spectral.rows import Rows, as_rows

# S is kept if it is at most this large. Otherwise its row blocks are computed again for every product.
_HELD_BYTES = 2**32
# The median distance is that of the pairs of at most this many rows.
_MEDIAN_ROWS = 1000


def sc(X: Any, n_components: int, *, sigma: float | None = None, scale: Scale = "unit") -> Any:
    """Spectral clustering: the leading eigenvectors of G = D^-1/2 S D^-1/2, S Gaussian. Takes O(n²) time.

    Returns F (n × c). :class:`gcnsl.spectral.SpectralFeatures` documents the arguments and all special cases.
    """
    rows = as_rows(X)
    return rows.deliver(fit_sc(rows, n_components, sigma=sigma, scale=scale)[0])


@dataclass(frozen=True)
class GaussianMap:
    """x ↦ f = d^-1/2 s W.

    Attributes:
        weight: W (n × c), times the scale of F.
        eigenvalues: The eigenvalues of G (c), descending; zero beyond the rank.
        sigma: σ / magnitude.
        magnitude: What the training rows were divided by (see :class:`~gcnsl.spectral.rows.Rows`).
        training: The training rows, divided by it.
    """

    weight: Tensor
    eigenvalues: Tensor
    sigma: float
    magnitude: float
    training: Rows

    def __call__(self, rows: Rows) -> Tensor:
        """Features (n × c) of any rows."""
        with threads_for(_work(rows, *self.weight.shape)):
            rows = rows.divided(self.magnitude)
            features = torch.empty(rows.shape[0], self.weight.shape[1], dtype=rows.dtype, device=rows.device)
            for part, similarity in _similarities(rows, self.training, self.sigma):
                features[part] = inverse_sqrt(similarity.sum(1))[:, None] * (similarity @ self.weight)
            return features

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors."""
        return {"relative_sigma_": self.sigma}, {"weight": self.weight, "eigenvalues": self.eigenvalues}

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], tensors: Mapping[str, Tensor], rows: Rows, count: int) -> GaussianMap:
        """The map with this state and c components, which was fitted to these rows."""
        shapes = {"weight": (rows.shape[0], count), "eigenvalues": (count,)}
        weight, eigenvalues = restored(tensors, shapes, rows.device)
        sigma = check_number("relative_sigma_", plain["relative_sigma_"], above=0)
        return cls(weight, eigenvalues, sigma, rows.magnitude, rows.divided(rows.magnitude))


def fit_sc(rows: Rows, n_components: int, *, sigma: float | None, scale: Scale) -> tuple[Tensor, GaussianMap]:
    """F of the training rows, and the map that extends it to other rows."""
    count, factor = check_whole("n_components", n_components, least=1), scale_factor(scale, rows.shape[0])
    with threads_for(_work(rows, rows.shape[0], count)):
        magnitude = rows.magnitude
        rows = rows.divided(magnitude)
        sigma = median_distance(rows) if sigma is None else check_number("sigma", sigma, above=0) / magnitude
        sigma = min(max(sigma, 1e-150), 1e150)  # beyond, S is the same, but σ² would overflow or vanish
        normalised, inverse_root = _normalised_similarity(rows, sigma)
        eigenvalues, vectors = leading_eigenpairs(normalised, rows.shape[0], count, device=rows.device)
        eigenvalues, vectors = padded(eigenvalues, count), padded(vectors, count)
        vectors = vectors * ((eigenvalues > 0) * column_signs(vectors) * factor)
        # The layout decides how products are rounded: a map restored from a file is contiguous, so this one is, too.
        weight = (inverse_root[:, None] * vectors * inverse(eigenvalues)).contiguous()
    return vectors.to(rows.dtype), GaussianMap(weight, eigenvalues, sigma, magnitude, rows)


def _work(rows: Rows, others: int, count: int) -> int:
    """The multiply-adds of similarities to so many other rows and of ``count`` components, roughly."""
    return rows.shape[0] * others * (rows.shape[1] + 4 * count + 64)


def median_distance(rows: Rows) -> float:
    """The median of the nonzero distances between rows; 1 if all rows are equal."""
    n = rows.shape[0]
    sample = rows.take(torch.arange(min(n, _MEDIAN_ROWS), device=rows.device) * n // min(n, _MEDIAN_ROWS))
    squared = torch.cat([block for _, block in _squared_distances(sample, sample)])
    above = squared.triu(1)
    # Rounding makes the squared distance of equal rows about 1e-16 ‖x‖².
    apart = above[above > 1e-12 * squared.max()]
    return float(apart.median().sqrt()) if len(apart) else 1.0


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
    """G, as a matrix if it is small enough to be kept and as a function v ↦ G v otherwise, and D^-1/2 (n)."""
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
