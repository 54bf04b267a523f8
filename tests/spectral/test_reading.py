"""Every kind of array is read, bad ones are refused, and large ones are never made dense."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import torch

from gcnsl.errors import LONGEST, InputError
from gcnsl.spectral import SpectralFeatures

from .cases import METHODS, layouts, words


def features(x, c, method="esc", **options):
    return SpectralFeatures(method, n_components=c, **options).fit_transform(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_every_layout_gives_the_same_values_in_its_own_kind(method, dtype):
    x = words(80, 40).astype(dtype)
    expected = features(x, 4, method, n_anchors=30, random_state=0)
    for name, array in layouts(x).items():
        found = features(array, 4, method, n_anchors=30, random_state=0)
        assert isinstance(found, torch.Tensor) == name.startswith("torch"), name
        assert not getattr(found, "requires_grad", False), name
        assert np.asarray(found).dtype == dtype, name
        np.testing.assert_allclose(found, expected, atol=1e-6 if dtype == np.float32 else 1e-12, err_msg=name)


def test_whole_numbers_booleans_and_half_precision_are_read():
    x = words(60, 30)
    np.testing.assert_allclose(features(scipy.sparse.csr_array(x.astype(np.int64)), 3), features(x, 3), atol=1e-12)
    np.testing.assert_allclose(features((x > 0).tolist(), 3), features((x > 0).astype(float), 3), atol=1e-12)
    half = features(torch.from_numpy(x).bfloat16(), 3)
    assert half.dtype == torch.bfloat16
    np.testing.assert_allclose(half.float(), features(x, 3), atol=1e-2)


def test_unsorted_and_repeated_entries_of_a_csr_matrix_are_added_up_without_touching_it():
    matrix = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 1.0, 3.0, 1.0]), np.array([1, 0, 1, 2, 0]), np.array([0, 3, 5])), shape=(2, 3)
    )
    before, esc_anch = (
        (matrix.data.copy(), matrix.indices.copy()),
        SpectralFeatures(n_components=2, n_anchors=2).fit_transform,
    )
    np.testing.assert_allclose(esc_anch(matrix), esc_anch(matrix.toarray()), atol=1e-12)
    np.testing.assert_array_equal(matrix.data, before[0])
    np.testing.assert_array_equal(matrix.indices, before[1])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (None, "Expected 2D array"),
        ("x", "could not convert string"),
        ([[1, 2], [3]], "inhomogeneous"),
        (np.ones(3), "Expected 2D array, got 1D array"),
        (torch.ones(0, 3), "0 sample"),
        (words(4, 3) * 1j, "Complex data"),
        (torch.ones(4, 3) * 1j, "Complex data"),
        (np.full((4, 3), np.nan), "contains NaN"),
        (torch.full((4, 3), torch.inf), "contains infinity"),
        (scipy.sparse.csr_array(np.full((4, 3), np.nan)), "contains NaN"),
        (np.array([[object()]]), "must be a string or a real number"),
    ],
)
def test_what_scikit_learn_refuses_is_an_error_of_the_package(x, message):
    with pytest.raises(InputError, match=message) as refusal:
        features(x, 2)
    assert len(str(refusal.value)) <= LONGEST
    assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="X has 3 features, but SpectralFeatures is expecting 4"):
        SpectralFeatures(n_components=2).fit(torch.ones(9, 4)).transform(torch.ones(2, 3))


@pytest.mark.parametrize("magnitude", [1e-70, 1e300])
def test_magnitudes_whose_squares_overflow_or_vanish_are_refused(magnitude):
    with pytest.raises(InputError, match=re.escape(f"since they are squared: divide X by {magnitude:.1e}")):
        features(np.array([[0.0, magnitude], [-magnitude / 2, 0.0]]), 1)
    np.testing.assert_array_equal(features(np.zeros((3, 2)), 1), np.zeros((3, 1)))


def test_a_sparse_matrix_is_never_made_dense_and_its_cosines_are_never_formed():
    n, d, m = 60_000, 500_000, 300  # in float64, X would take 224 GiB and R 137 MiB
    rng = np.random.default_rng(0)
    column = rng.integers(8, size=n)[:, None] * 4 + rng.integers(6, size=(n, 3))
    x = scipy.sparse.csr_array((np.ones(3 * n, np.float32), column.ravel(), np.arange(0, 3 * n + 1, 3)), shape=(n, d))
    tracemalloc.start()
    found = features(x, 6, "esc-anch", n_anchors=m, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 2**20
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-4)
