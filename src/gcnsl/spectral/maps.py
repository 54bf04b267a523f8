r"""SC, ESC and ESC-ANCH: fitted to the rows of X, they give F and the map that extends it to any other rows.

**SC** has the Gaussian similarity S_ij = exp(-‖x_i - x_j‖² / 2σ²), which is formed, and

    d_i = Σ_j s_ij        G = D^-1/2 S D^-1/2 = F Λ Fᵀ.

A row x with similarities s to the training rows has the features (Nyström's extension; for a training row, G F Λ⁻¹ = F)

    f = d^-1/2 s W        where d = Σ_j s_j and W = D^-1/2 F Λ⁻¹.

**ESC and ESC-ANCH** have an inner product as their similarity, so that S is never formed. With x̂ the row of a node,

    r = x̂ B        S = R Rᵀ        d_i = Σ_j s_ij = r_i · Σ_j r_j        P = D^-1/2 R = U Σ Vᵀ        F = U.

ESC has x̂ = x and B = I. ESC-ANCH has x̂ = x / ‖x‖ and B = Âᵀ, the m anchors as unit columns, so R holds cosines. With
W = B V Σ⁻¹, any row has the features

    f = d^-1/2 x̂ W        where d = x̂ · u and u = B Bᵀ Σ_j x̂_j.

V and Σ come from the smaller of PᵀP and PPᵀ, which is formed if it is not larger than P. Throughout, X is a float64
array or CSR matrix (n × d), and F has unit columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import gen_batches

from gcnsl.errors import InputError
from gcnsl.spectral.eigen import Floats, column_signs, inverse, inverse_sqrt, leading_eigenpairs

Ints = NDArray[np.int64]

MOST_BYTES = 2**32
"""The largest S that is formed."""
BLOCK_ENTRIES = 2**22
"""The similarities to new rows that are computed at a time."""
_MEDIAN_ROWS = 1000
"""The median distance is that of the pairs of at most this many rows."""


@dataclass(frozen=True)
class GaussianMap:
    """SC: x ↦ f = d^-1/2 s W, with W (n × c) times the scale of F and the eigenvalues of G (c)."""

    weight: Floats
    eigenvalues: Floats
    sigma: float
    training: Any

    def __call__(self, x: Any) -> Floats:
        """Features (n × c) of any rows."""
        n, step = x.shape[0], max(1, BLOCK_ENTRIES // len(self.weight))
        parts = (_similarity(x[part], self.training, self.sigma) for part in gen_batches(n, step))
        return np.concatenate([inverse_sqrt(s.sum(axis=1))[:, None] * (s @ self.weight) for s in parts])


def fit_sc(x: Any, count: int, *, sigma: float | None, factor: float) -> tuple[Floats, GaussianMap]:
    """F times a factor of the training rows, and the map; σ is the median distance if it is None."""
    n = x.shape[0]
    if n * n * 8 > MOST_BYTES:
        raise InputError(
            f"SC compares all pairs of rows, and {n:,} rows need a matrix of {n * n / 2**27:.0f} GiB: "
            "use method='esc' or 'esc-anch', which need none"
        )
    sigma = median_distance(x) if sigma is None else sigma
    sigma = min(max(sigma, 1e-150), 1e150)  # beyond, S is the same, but σ² would overflow or vanish
    matrix = _similarity(x, x, sigma)
    root = matrix.sum(axis=1) ** -0.5
    matrix *= root[:, None]
    matrix *= root
    eigenvalues, vectors = leading_eigenpairs(matrix, count)
    features = vectors * ((eigenvalues > 0) * column_signs(vectors) * factor)
    # The layout decides how products are rounded: a map restored from a file is contiguous, so this one is, too.
    weight = np.ascontiguousarray(root[:, None] * features * inverse(eigenvalues))
    return features, GaussianMap(weight, eigenvalues, sigma, x)


def _similarity(x: Any, others: Any, sigma: float) -> Floats:
    """S between the rows of two matrices."""
    with np.errstate(over="ignore"):  # of exp(-∞)
        similarity: Floats = rbf_kernel(x, others, gamma=0.5 / sigma**2)
    return similarity


def median_distance(x: Any) -> float:
    """The median of the nonzero distances between rows (the lower one of two); 1 if all rows are equal."""
    n = x.shape[0]
    sample = x[np.arange(min(n, _MEDIAN_ROWS)) * n // min(n, _MEDIAN_ROWS)]
    squared = euclidean_distances(sample, squared=True)
    above = squared[np.triu_indices(len(squared), 1)]
    # Rounding makes the squared distance of equal rows about 1e-16 ‖x‖².
    apart = np.sort(above[above > 1e-12 * squared.max()])
    return float(apart[(len(apart) - 1) // 2] ** 0.5) if len(apart) else 1.0


@dataclass(frozen=True)
class LinearMap:
    """ESC and ESC-ANCH: x ↦ f = d^-1/2 x̂ W, d = x̂ · u, with W (d × c) times the scale of F and u (d), the ``total``.

    ``signed`` says whether a training row has a negative entry. ESC has no anchors (m) and no basis B (d × m).
    """

    weight: Floats
    total: Floats
    eigenvalues: Floats
    signed: bool
    anchors: Ints | None
    basis: Any

    @classmethod
    def of(cls, x: Any, *, anchors: Ints | None = None, **learned: Any) -> LinearMap:
        """The map with these anchors among the rows of X."""
        return cls(anchors=anchors, basis=None if anchors is None else unit_columns(x[anchors]), **learned)

    def __call__(self, x: Any) -> Floats:
        """Features (n × c) of any rows."""
        features: Floats = x @ self.weight
        features *= self.row_scale(x)[:, None]
        return features

    def row_scale(self, x: Any) -> Floats:
        """The factors d^-1/2 x̂ / x of any rows (n)."""
        return _row_scale(x, self.basis, self.total, signed=self.signed)


def fit_esc(x: Any, count: int, *, anchors: Ints | None, factor: float) -> tuple[Floats, LinearMap]:
    """F times a factor of the training rows, and the map; without anchors (ESC) or with their row numbers."""
    basis = None if anchors is None else unit_columns(x[anchors])
    total = x.T @ _unit_scale(x, basis)
    total = total if basis is None else basis @ (basis.T @ total)
    signed = bool((x < 0).sum() > 0)
    row_scale = _row_scale(x, basis, total, signed=signed)
    eigenvalues, weight = _decompose(_scaled(row_scale, x), basis, count)
    features = (x @ weight) * row_scale[:, None]
    signs = column_signs(features) * factor
    features *= signs
    return features, LinearMap(np.ascontiguousarray(weight * signs), total, eigenvalues, signed, anchors, basis)


def unit_columns(anchors: Any) -> Any:
    """B (d × m): the anchors (m × d) as unit columns."""
    return _scaled(inverse_sqrt(_squared_norms(anchors)), anchors).T


def _decompose(p: Any, basis: Any, count: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues σ² of G, descending, and W = B V Σ⁻¹ (d × c); ``p`` is P or, with a basis, D^-1/2 X̂."""
    (n, d), sparse, inner = p.shape, sp.issparse(p), basis
    if basis is not None and not sparse and basis.shape[1] < d:
        p, inner = p @ basis, None  # smaller than X
    wide = basis is None and n < d
    tall = p.T if wide else p
    if tall.shape[1] ** 2 <= (p.nnz if sparse else p.size):
        matrix = tall.T @ tall
        matrix = matrix.toarray() if sparse else matrix
        matrix = matrix if inner is None else inner.T @ (matrix @ inner)
    else:
        steps = (tall, tall.T) if inner is None else (inner, tall, tall.T, inner.T)
        size = steps[0].shape[1]
        matrix = LinearOperator((size, size), lambda v: reduce(lambda u, step: step @ u, steps, v), dtype=np.float64)
    values, v = leading_eigenpairs(matrix, count)
    if wide:
        return values, (p.T @ v) * inverse(values)
    return values, (v if basis is None else basis @ v) * inverse_sqrt(values)


def _row_scale(x: Any, basis: Any, total: Floats, *, signed: bool) -> Floats:
    """The factors d^-1/2 x̂ / x (n); d is raised to at least s_ii = ‖r_i‖² if the row or the training has negatives.

    Without negative features, the sum d_i = Σ_j s_ij is never below its term s_ii. With them, it can be negative.
    """
    unit = _unit_scale(x, basis)
    degree = unit * (x @ total)
    bounded = signed | ((x < 0).sum(axis=1) > 0)
    if bounded.any():
        least = unit**2 * _squared_norms(x if basis is None else x @ basis)
        degree = np.where(bounded, np.maximum(degree, least), degree)
    return unit * inverse_sqrt(degree)


def _unit_scale(x: Any, basis: Any) -> Floats:
    """The factors x̂ / x (n): 1 for inner products, 1 / ‖x‖ for cosines (0 for a zero row)."""
    return np.ones(x.shape[0]) if basis is None else inverse_sqrt(_squared_norms(x))


def _squared_norms(x: Any) -> Floats:
    """‖x_i‖² (n)."""
    norms: Floats = (x * x).sum(axis=1)
    return norms


def _scaled(scale: Floats, x: Any) -> Any:
    """The rows of X times these factors."""
    return sp.diags_array(scale) @ x if sp.issparse(x) else scale[:, None] * x
