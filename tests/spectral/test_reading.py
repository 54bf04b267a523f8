"""Every kind of array is read, and bad ones are refused."""

import re

import numpy as np
import pytest
import scipy.sparse
import torch

from gcnsl.errors import InputError
from gcnsl.spectral import SpectralFeatures, esc, esc_anch, sc

from .cases import layouts, words


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "function", [lambda x: sc(x, 4), lambda x: esc(x, 4), lambda x: esc_anch(x, 4, 30, random_state=0)]
)
def test_every_layout_gives_the_same_values_in_its_own_kind(function, dtype):
    x = words(80, 40).astype(dtype)
    expected = function(x)
    for name, array in layouts(x).items():
        features = function(array)
        assert isinstance(features, torch.Tensor) == name.startswith("torch"), name
        assert not getattr(features, "requires_grad", False), name
        assert np.asarray(features).dtype == dtype, name
        np.testing.assert_allclose(features, expected, atol=1e-6 if dtype == np.float32 else 1e-12, err_msg=name)


def test_whole_numbers_booleans_and_half_precision_are_read():
    x = words(60, 30)
    np.testing.assert_allclose(esc(x.astype(int), 3), esc(x, 3), atol=1e-12)
    np.testing.assert_allclose(esc(scipy.sparse.csr_array(x.astype(np.int64)), 3), esc(x, 3), atol=1e-12)
    np.testing.assert_allclose(esc((x > 0).tolist(), 3), esc((x > 0).astype(float), 3), atol=1e-12)
    half = esc(torch.from_numpy(x).bfloat16(), 3)
    assert half.dtype == torch.bfloat16
    np.testing.assert_allclose(half.float(), esc(x, 3), atol=1e-2)


def test_unsorted_and_repeated_entries_of_a_csr_matrix_are_added_up_without_touching_it():
    matrix = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 1.0, 3.0, 1.0]), np.array([1, 0, 1, 2, 0]), np.array([0, 3, 5])), shape=(2, 3)
    )
    before = matrix.data.copy(), matrix.indices.copy()
    np.testing.assert_allclose(esc_anch(matrix, 2, 2), esc_anch(matrix.toarray(), 2, 2), atol=1e-12)
    np.testing.assert_array_equal(matrix.data, before[0])
    np.testing.assert_array_equal(matrix.indices, before[1])


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, scipy.sparse.csr_array])
def test_bad_features_are_refused(convert):
    for bad in (np.nan, np.inf):
        x = words(10, 4)
        x[3, 2] = bad
        with pytest.raises(InputError, match="X holds a NaN or an infinite entry"):
            esc(convert(x), 2)
    with pytest.raises(InputError, match=r"X has dtype .*complex.*: features must be real"):
        esc(convert(words(4, 4) * 1j), 2)


def test_bad_shapes_and_a_wrong_number_of_features_are_refused():
    with pytest.raises(InputError, match=r"X has shape \(3,\): it must be two-dimensional"):
        esc(np.ones(3), 2)
    with pytest.raises(InputError, match=r"X has shape \(0, 3\)"):
        esc(torch.ones(0, 3), 2)
    with pytest.raises(InputError, match=r"X is not an array \(.*\): give NumPy, torch or SciPy data"):
        esc([[1, 2], [3]], 2)
    with pytest.raises(InputError, match="X has 3 features, but SpectralFeatures expects 4"):
        SpectralFeatures(n_components=2).fit(torch.ones(9, 4)).transform(torch.ones(2, 3))


@pytest.mark.parametrize("magnitude", [1e-70, 1e70, 1e300])
def test_magnitudes_whose_squares_overflow_or_vanish_are_refused(magnitude):
    with pytest.raises(InputError, match=re.escape(f"since they are squared: divide X by {magnitude:.1e}")):
        esc(np.array([[0.0, magnitude], [-magnitude / 2, 0.0]]), 1)
    np.testing.assert_array_equal(esc(np.zeros((3, 2)), 1), np.zeros((3, 1)))
