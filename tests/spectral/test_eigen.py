"""The eigensolver on matrices with a known spectrum."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from gcnsl.spectral.eigen import direct_size, leading_eigenpairs

from .cases import angle


def with_spectrum(values, *, seed=0):
    values = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return (q * values) @ q.T, values, q


@pytest.mark.parametrize("form", ["matrix", "products"])
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ([1, 0.9, 0.8, 0.7, 0.6, 0.5], 0.3),
        ([1] * 6, 0.3),
        ([1] * 12 + [0.9, 0.8], 0.0),
        ([1, *[0.5] * 9, 0.4], 0.3),
        ([1e-9, 5e-10], 0.3),
        ([0.0, 0.0, 0.0], 0.0),
    ],
    ids=["plain", "all-equal", "twelve-copies", "nine-copies", "tiny", "zero"],
)
def test_leading_eigenpairs_with_repeated_and_vanishing_eigenvalues(form, head, tail):
    count = len(head)
    assert direct_size(count) < 400
    bulk = head[-1] * tail * np.linspace(0, 1, 400 - count) ** 2
    matrix, values, q = with_spectrum([*head, *bulk])
    found, vectors = leading_eigenpairs(matrix if form == "matrix" else aslinearoperator(matrix), count)
    np.testing.assert_allclose(found, values[:count], atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-8 * max(head))
    if head[-1] > 0:
        assert angle(vectors, q[:, :count]) < 1e-6


def test_many_equal_eigenvalues_of_a_large_matrix_need_no_dense_one(monkeypatch):
    """As of a graph of pairs: ARPACK does not converge, and the matrix may be too large to be decomposed."""
    size, count = 600, 4
    values = np.append(np.ones(size // 2), np.linspace(1 - 1e-9, 1 - 1e-6, size // 2))
    monkeypatch.setattr("gcnsl.spectral.eigen._LARGEST_DECOMPOSED", 100)
    monkeypatch.setattr("gcnsl.spectral.eigen._MOST_RESTARTS", 1)
    monkeypatch.setattr("scipy.linalg.eigh", lambda *_, **__: pytest.fail("decomposed as a whole"))
    matrix = aslinearoperator(np.diag(values))
    found, vectors = leading_eigenpairs(matrix, count)
    np.testing.assert_allclose(found, 1, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-6)
