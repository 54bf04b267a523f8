"""The leading eigenpairs of a symmetric positive semi-definite matrix; rank, sign and scale of the columns of F."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gcnsl.checks import check_choice

Floats = NDArray[np.float64]
Scale = Literal["unit", "sqrt-n"]

RANK_TOLERANCE = 1e-10
"""Eigenvalues below this share of the largest count as zero. Eigenvectors of the others have errors of at most about
1e-16 / 1e-10, because the matrix is in float64."""
_MISSED_TOLERANCE = 1e-8
"""The relative error of an eigenpair that was found late."""
_NEAR_LARGEST = 1 - 1e-6
"""Entries this close to the largest of their column count as equally large, so that rounding never decides a sign."""


def direct_size(count: int) -> int:
    """Up to this size a full decomposition by LAPACK is faster than a Krylov basis of nearly the same size."""
    return max(192, 6 * count)


def operator(size: int, multiply: Callable[[Floats], Floats]) -> LinearOperator:
    """A symmetric matrix (size × size) that is known by its products with the columns of a matrix."""
    return LinearOperator((size, size), lambda v: multiply(v.reshape(size, 1)), matmat=multiply, dtype=np.float64)


def leading_eigenpairs(matrix: Any, count: int) -> tuple[Floats, Floats]:
    """The ``count`` largest eigenvalues, descending, and their eigenvectors (size × count).

    Small matrices are decomposed by LAPACK, larger ones by ARPACK, to the precision of float64 and from a start vector
    that is always the same. Eigenvalues beyond the rank are exactly zero, and so are those beyond the size, whose
    eigenvectors are zero, too.

    Args:
        matrix: An array, or an :func:`operator` if only products are known.
        count: The number of eigenpairs.
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
        values, vectors = eigsh(matrix, count, which="LA", v0=start, maxiter=max(20, 2 * size // count))
        while (missed := _missed(matrix, values, vectors, generator)) is not None:
            values, vectors = np.append(values, missed[0]), np.hstack([vectors, missed[1]])
            kept = np.argsort(-values, kind="stable")[:count]
            values, vectors = values[kept], vectors[:, kept]
    except ArpackNoConvergence:  # most eigenvalues are nearly equal
        return _decomposed(matrix, count)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _missed(
    matrix: Any, values: Floats, vectors: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats] | None:
    """An eigenpair that ARPACK should have found, too: it begins with one vector, and can miss copies of a value."""
    weighted = values[:, None] * vectors.T
    rest = operator(len(vectors), lambda v: matrix @ v - vectors @ (weighted @ v))
    start = rest @ generator.standard_normal(len(vectors))
    if not start.any():
        return None
    value, vector = eigsh(rest, 1, which="LA", v0=start, tol=_MISSED_TOLERANCE)
    return (value, vector) if value[0] > values.min() + RANK_TOLERANCE * values.max() else None


def _decomposed(matrix: Any, count: int) -> tuple[Floats, Floats]:
    if not isinstance(matrix, np.ndarray):
        matrix = matrix @ np.eye(matrix.shape[0])
    values, vectors = scipy.linalg.eigh((matrix + matrix.T) / 2, driver="evd")
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def inverse_sqrt(values: Floats) -> Floats:
    """v^-1/2, and 0 where v is not positive, which gives zero features to a row that is similar to no other row."""
    return np.where(values > 0, np.where(values > 0, values, 1.0) ** -0.5, 0.0)


def inverse(eigenvalues: Floats) -> Floats:
    """1 / λ, and 0 for zeros."""
    return np.where(eigenvalues > 0, 1 / np.where(eigenvalues > 0, eigenvalues, 1.0), 0.0)


def column_signs(features: NDArray[Any]) -> Floats:
    """±1 for each column of F (n × c), such that its first entry of largest magnitude becomes positive."""
    lowest, highest = features.min(axis=0), features.max(axis=0)
    signs = np.where(highest >= -lowest, 1.0, -1.0)
    bound = _NEAR_LARGEST * np.maximum(highest, -lowest)
    for column in np.flatnonzero(np.minimum(highest, -lowest) > bound):
        entries = features[:, column]
        signs[column] = np.sign(entries[np.abs(entries) >= bound[column]][0])
    return signs


def scale_factor(scale: Scale, n: int) -> float:
    """The factor for unit columns: 1, or √n, which gives entries of about one for any n."""
    return math.sqrt(n) if check_choice("scale", scale, get_args(Scale)) == "sqrt-n" else 1.0
