"""The eigensolver on matrices with a known spectrum."""

import numpy as np
import pytest
import torch

from gcnsl.spectral import eigen
from gcnsl.spectral.eigen import direct_size, leading_eigenpairs

from .cases import angle

CPU = torch.device("cpu")


def with_spectrum(values, *, seed=0):
    values = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return torch.from_numpy((q * values) @ q.T), values, q


@pytest.mark.parametrize("form", ["matrix", "products"])
@pytest.mark.parametrize(
    "head",
    [
        [1, 0.9, 0.8, 0.7, 0.6, 0.5],
        [1] * 6,
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.9, 0.8],
        [1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4],
        [1e-9, 5e-10],
        [0.0, 0.0, 0.0],
    ],
    ids=["plain", "all-equal", "twelve-copies", "nine-copies", "tiny", "zero"],
)
@pytest.mark.parametrize("tail", [0.3, 0.0], ids=["bulk", "rank-deficient"])
def test_leading_eigenpairs_with_repeated_and_vanishing_eigenvalues(form, head, tail):
    count = len(head)
    assert direct_size(count) < 400
    bulk = head[-1] * tail * np.linspace(0, 1, 400 - count) ** 2
    matrix, values, q = with_spectrum([*head, *bulk])
    found, vectors = leading_eigenpairs(matrix if form == "matrix" else matrix.matmul, 400, count, device=CPU)
    np.testing.assert_allclose(found, values[:count], atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-8 * max(head))
    if head[-1] > 0:
        assert angle(vectors.numpy(), q[:, :count]) < 1e-6


@pytest.mark.parametrize(("copies", "blocks"), [(3, [4]), (4, [4, 9]), (7, [4, 9]), (8, [4, 9]), (9, [4])])
def test_as_many_equal_eigenvalues_as_a_block_holds_are_looked_for_again(copies, blocks, monkeypatch):
    """Fewer copies than the block is wide cannot hide others; nine are a tie, of which any nine will do."""
    widths = []

    lanczos = eigen._lanczos

    def recorded(multiply, size, count, block, *others):
        widths.append(block)
        return lanczos(multiply, size, count, block, *others)

    monkeypatch.setattr(eigen, "_lanczos", recorded)
    below = 0.5 * 0.8 ** np.arange(300 - copies)
    matrix, values, _ = with_spectrum([1.0] * copies + list(below))
    found, _ = leading_eigenpairs(matrix.matmul, 300, 9, device=CPU)
    np.testing.assert_allclose(found, values[:9], atol=1e-12)
    assert widths == blocks


def test_after_the_most_products_the_vectors_that_stand_out_are_found():
    matrix, values, q = with_spectrum([1, 0.9, 0.8, *np.linspace(0.4, 0.5, 997)])
    products = []

    def multiply(columns):
        products.append(1)
        return matrix @ columns

    found, vectors = leading_eigenpairs(multiply, 1000, 8, device=CPU, most_products=12)
    assert len(products) <= 8 + 12
    np.testing.assert_allclose(found[:3], values[:3], atol=1e-6)
    assert angle(vectors[:, :3].numpy(), q[:, :3]) < 1e-3
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)
    everything = leading_eigenpairs(matrix.matmul, 1000, 8, device=CPU)
    np.testing.assert_allclose(everything[0], values[:8], atol=1e-10)


def test_a_tie_at_the_last_place_gives_some_of_the_tied_vectors():
    matrix, _, q = with_spectrum([1, 0.8, 0.5, 0.5, 0.5, *np.linspace(0, 0.3, 395)])
    _, vectors = leading_eigenpairs(matrix.matmul, 400, 3, device=CPU)
    span = q[:, :5]
    np.testing.assert_allclose(span @ (span.T @ vectors.numpy()), vectors, atol=1e-9)
    np.testing.assert_array_equal(vectors, leading_eigenpairs(matrix.matmul, 400, 3, device=CPU)[1])


def test_a_flat_spectrum_is_handed_to_lapack():
    matrix, values, _ = with_spectrum(1 + 1e-9 * np.linspace(0, 1, 300))
    found, vectors = leading_eigenpairs(matrix.matmul, 300, 4, device=CPU)
    np.testing.assert_allclose(found, values[:4], atol=1e-13)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-12)
