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

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.checks import check_number, check_whole
from gcnsl.errors import InputError
from gcnsl.execution import threads_for
from gcnsl.spectral.eigen import Floats, Scale, column_signs, inverse, inverse_sqrt, leading_eigenpairs, scale_factor
from gcnsl.spectral.rows import Rows, as_rows

MOST_BYTES = 2**32
"""The largest S that is formed."""
_MEDIAN_ROWS = 1000
"""The median distance is that of the pairs of at most this many rows."""


def sc(X: Any, n_components: int, *, sigma: float | None = None, scale: Scale = "unit") -> Any:
    """Spectral clustering: the leading eigenvectors of G = D^-1/2 S D^-1/2, S Gaussian. Takes O(n²) time and memory.

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
        sigma: σ.
        training: The training rows.
    """

    weight: Floats
    eigenvalues: Floats
    sigma: float
    training: Rows

    def __call__(self, rows: Rows) -> NDArray[Any]:
        """Features (n × c) of any rows."""
        with threads_for(_work(rows, *self.weight.shape)):
            features = rows.empty(self.weight.shape[1])
            for part, similarity in _similarities(rows, self.training, self.sigma):
                features[part] = inverse_sqrt(similarity.sum(axis=1))[:, None] * (similarity @ self.weight)
            return features

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors."""
        tensors = {"weight": torch.from_numpy(self.weight), "eigenvalues": torch.from_numpy(self.eigenvalues)}
        return {"relative_sigma_": self.sigma}, tensors

    @classmethod
    def from_state(cls, plain: Mapping[str, Any], tensors: Mapping[str, Tensor], rows: Rows) -> GaussianMap:
        """The map with this state, which was fitted to these rows."""
        return cls(tensors["weight"].numpy(), tensors["eigenvalues"].numpy(), plain["relative_sigma_"], rows)


def fit_sc(rows: Rows, n_components: int, *, sigma: float | None, scale: Scale) -> tuple[NDArray[Any], GaussianMap]:
    """F of the training rows, and the map that extends it to other rows."""
    n = rows.shape[0]
    count, factor = check_whole("n_components", n_components, least=1), scale_factor(scale, n)
    if n * n * 8 > MOST_BYTES:
        raise InputError(
            f"SC compares all pairs of rows, and {n:,} rows need a matrix of {n * n / 2**27:.0f} GiB: "
            "use method='esc' or 'esc-anch', which need none"
        )
    with threads_for(_work(rows, n, count)):
        sigma = median_distance(rows) if sigma is None else check_number("sigma", sigma, above=0)
        sigma = min(max(sigma, 1e-150), 1e150)  # beyond, S is the same, but σ² would overflow or vanish
        matrix = np.empty((n, n))
        for part, similarity in _similarities(rows, rows, sigma):
            matrix[part] = similarity
        inverse_root = matrix.sum(axis=1) ** -0.5
        matrix *= inverse_root[:, None]
        matrix *= inverse_root
        eigenvalues, vectors = leading_eigenpairs(matrix, count)
        vectors = vectors * ((eigenvalues > 0) * column_signs(vectors) * factor)
        # The layout decides how products are rounded: a map restored from a file is contiguous, so this one is, too.
        weight = np.ascontiguousarray(inverse_root[:, None] * vectors * inverse(eigenvalues))
    return vectors, GaussianMap(weight, eigenvalues, sigma, rows)


def _work(rows: Rows, others: int, count: int) -> int:
    """The multiply-adds of similarities to so many other rows and of ``count`` components, roughly."""
    return rows.shape[0] * others * (rows.shape[1] + 4 * count + 64)


def median_distance(rows: Rows) -> float:
    """The median of the nonzero distances between rows (the lower one of two); 1 if all rows are equal."""
    n = rows.shape[0]
    sample = rows.take(np.arange(min(n, _MEDIAN_ROWS)) * n // min(n, _MEDIAN_ROWS))
    squared = np.concatenate([block for _, block in _squared_distances(sample, sample)])
    above = squared[np.triu_indices(len(squared), 1)]
    # Rounding makes the squared distance of equal rows about 1e-16 ‖x‖².
    apart = np.sort(above[above > 1e-12 * squared.max()])
    return float(apart[(len(apart) - 1) // 2] ** 0.5) if len(apart) else 1.0


def _squared_distances(rows: Rows, others: Rows) -> Iterator[tuple[slice, Floats]]:
    """‖x_i - y_j‖² as row blocks (b × n)."""
    other_norms, norms = others.squared_norms(), rows.squared_norms()
    for part, block in rows.blocks(max(others.shape)):
        dense = block.toarray() if rows.sparse else block
        squared = others.matmul(dense.T).T * -2.0
        squared += norms[part, None]
        squared += other_norms
        yield part, np.maximum(squared, 0, out=squared)


def _similarities(rows: Rows, others: Rows, sigma: float) -> Iterator[tuple[slice, Floats]]:
    """S as row blocks (b × n)."""
    for part, squared in _squared_distances(rows, others):
        yield part, np.exp(squared / (-2 * sigma**2))
