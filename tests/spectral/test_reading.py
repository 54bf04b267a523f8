"""Every kind of array is read, bad ones are refused, and large ones are never made dense."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from gcnsl.errors import LONGEST, InputError
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
        esc(x, 2)
    assert len(str(refusal.value)) <= LONGEST
    assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="X has 3 features, but SpectralFeatures is expecting 4"):
        SpectralFeatures(n_components=2).fit(torch.ones(9, 4)).transform(torch.ones(2, 3))


@pytest.mark.parametrize("magnitude", [1e-70, 1e300])
def test_magnitudes_whose_squares_overflow_or_vanish_are_refused(magnitude):
    with pytest.raises(InputError, match=re.escape(f"since they are squared: divide X by {magnitude:.1e}")):
        esc(np.array([[0.0, magnitude], [-magnitude / 2, 0.0]]), 1)
    np.testing.assert_array_equal(esc(np.zeros((3, 2)), 1), np.zeros((3, 1)))


def test_a_sparse_matrix_too_large_to_be_dense():
    n, d = 60_000, 500_000  # 224 GiB as a dense float64 matrix
    rng = np.random.default_rng(0)
    column = rng.integers(8, size=n)[:, None] * 4 + rng.integers(6, size=(n, 3))
    x = scipy.sparse.csr_array((np.ones(3 * n, np.float32), column.ravel(), np.arange(0, 3 * n + 1, 3)), shape=(n, d))
    features = esc_anch(x, 6, 300, random_state=0)
    np.testing.assert_allclose(features.T @ features, np.eye(6), atol=1e-4)


@pytest.mark.slow
def test_a_hundred_thousand_rows_stay_far_below_the_matrix_of_cosines():
    """R alone would take 400 MB (100,000 × 500 in float64); the spectral features of it must not."""
    script = """
import numpy as np, scipy.sparse
from pathlib import Path
from gcnsl.spectral import esc_anch
peak = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
n = 100_000
rng = np.random.default_rng(0)
column = (rng.integers(40, size=n)[:, None] * 20 + rng.integers(60, size=(n, 8))).ravel()
x = scipy.sparse.csr_array((np.ones(8 * n, np.float32), column, np.arange(0, 8 * n + 1, 8)), shape=(n, 1000))
x.sum_duplicates()
esc_anch(x[:2000], 50, 500, random_state=0)
before = peak()
features = esc_anch(x, 50, 500, random_state=0)
print(peak() - before - features.nbytes / 2**20)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from /proc")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 200
