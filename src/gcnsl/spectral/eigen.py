"""The leading eigenpairs of a symmetric positive semi-definite matrix, and the signs of the eigenvectors."""

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator

from gcnsl.sparse import arpack

Floats = NDArray[np.float64]

RANK_TOLERANCE = 1e-10
"""Eigenvalues below this share of the largest count as zero. Eigenvectors of the others have errors of at most about
1e-16 / 1e-10, because the matrix is in float64."""
_TOLERANCE, _VALUE_TOLERANCE = 1e-10, 1e-3
"""The residuals of eigenpairs as shares of their eigenvalues, and those with which only the value is asked for: its
error is about their square."""
_MOST_RESTARTS, _LARGEST_DECOMPOSED = 400, 8192
"""ARPACK is given up after so many restarts, and a larger matrix is never decomposed as a whole (0.5 GiB)."""
_OVERSAMPLES, _POWERS = 10, 30
_NEAR_LARGEST = 1 - 1e-6
"""Entries this close to the largest of their column count as equally large, so that rounding never decides a sign."""


def direct_size(count: int) -> int:
    """Up to this size a full decomposition by LAPACK is faster than a Krylov basis of nearly the same size."""
    return max(192, 6 * count)


def leading_eigenpairs(matrix: NDArray[Any] | LinearOperator, count: int) -> tuple[Floats, Floats]:
    """The ``count`` largest eigenvalues, descending, and their eigenvectors (size × count).

    Small matrices are decomposed by LAPACK, larger ones by ARPACK from a start vector that is always the same. Where it
    does not converge, as most eigenvalues are nearly equal, LAPACK follows or, if large, subspace iteration.
    Eigenvalues beyond the rank are exactly zero, and so are those beyond the size, whose eigenvectors are zero, too.
    """
    size = matrix.shape[0]
    values, vectors = _iterated(matrix, count) if size > direct_size(count) else _decomposed(matrix, count)
    values = np.where(values > RANK_TOLERANCE * values[0], values, 0.0)
    beyond = count - len(values)  # more than there are
    return np.pad(values, (0, beyond)), np.pad(vectors, ((0, 0), (0, beyond)))


def _iterated(matrix: Any, count: int) -> tuple[Floats, Floats]:
    size, generator = matrix.shape[0], np.random.default_rng(0)
    start = matrix @ generator.standard_normal(size)  # the product damps small eigenvalues
    if not start.any():
        return np.zeros(count), np.eye(size, count)
    try:
        basis, restarts = max(20, count + count // 2), min(max(20, 2 * size // count), _MOST_RESTARTS)
        values, vectors = arpack(matrix, count, v0=start, ncv=basis, maxiter=restarts, tol=_TOLERANCE)
    except ArpackNoConvergence:
        return _decomposed(matrix, count)
    while True:  # ARPACK begins with one vector and can miss copies of an eigenvalue: is one left?
        order = np.argsort(-values, kind="stable")[:count]
        values, vectors = values[order], vectors[:, order]
        rest = _without(matrix, values, vectors)
        start = rest @ generator.standard_normal(size)
        try:
            found = arpack(rest, 1, v0=start, tol=_VALUE_TOLERANCE)[0] if start.any() else np.zeros(1)
            if found[0] <= values[-1] + RANK_TOLERANCE * values[0]:
                return values, vectors
            missed, vector = arpack(rest, 1, v0=start, tol=_TOLERANCE)
        except ArpackNoConvergence:
            return _decomposed(matrix, count)
        values, vectors = np.append(values, missed), np.hstack([vectors, vector])


def _without(matrix: Any, values: Floats, vectors: Floats) -> LinearOperator:
    """The matrix without these eigenpairs."""
    weighted = vectors * values
    return LinearOperator(matrix.shape, lambda v: matrix @ v - weighted @ (vectors.T @ v), dtype=np.float64)


def _decomposed(matrix: Any, count: int) -> tuple[Floats, Floats]:
    if matrix.shape[0] > _LARGEST_DECOMPOSED:
        return _approximated(matrix, count)
    if not isinstance(matrix, np.ndarray):
        matrix = np.column_stack([matrix @ unit for unit in np.eye(matrix.shape[0])])
    values, vectors = scipy.linalg.eigh((matrix + matrix.T) / 2, driver="evd")
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _approximated(matrix: Any, count: int) -> tuple[Floats, Floats]:
    """Subspace iteration; of nearly equal eigenvalues, it finds some mixture of their eigenvectors."""
    vectors = np.random.default_rng(0).standard_normal((matrix.shape[0], count + _OVERSAMPLES))
    for _ in range(_POWERS):
        vectors = np.linalg.qr(matrix @ vectors)[0]
    values, turn = np.linalg.eigh(vectors.T @ (matrix @ vectors))
    return values[::-1][:count], (vectors @ turn)[:, ::-1][:, :count]


def inverse_sqrt(values: Floats) -> Floats:
    """v^-1/2, and 0 where v is not positive, which gives zero features to a row that is similar to no other row."""
    return np.where(values > 0, np.where(values > 0, values, 1.0) ** -0.5, 0.0)


def inverse(eigenvalues: Floats) -> Floats:
    """1 / λ, and 0 for zeros."""
    return np.where(eigenvalues > 0, 1 / np.where(eigenvalues > 0, eigenvalues, 1.0), 0.0)


def column_signs(features: Floats) -> Floats:
    """±1 for each column of F (n × c), such that its first entry of largest magnitude becomes positive."""
    magnitude = np.abs(features)
    first = (magnitude >= _NEAR_LARGEST * magnitude.max(axis=0)).argmax(axis=0)
    signs: Floats = np.copysign(1.0, features[first, np.arange(features.shape[1])])
    return signs
