"""Products in blocks: memory stays bounded, and the block size does not matter."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch

import gcnsl.spectral.gaussian
import gcnsl.spectral.rows
from gcnsl.spectral import esc_anch
from gcnsl.spectral.rows import as_rows

from .cases import METHODS, fitted, words


@pytest.mark.parametrize("method", METHODS)
def test_small_blocks_change_nothing(method, monkeypatch):
    x = words(300, 210)
    arrays = {"numpy": x, "csr": scipy.sparse.csr_array(x), "dense": x + 0.5}
    expected = {name: fitted(method, array, 10, n_anchors=200)[1] for name, array in arrays.items()}
    monkeypatch.setattr(gcnsl.spectral.rows, "BLOCK_BYTES", 2**15)
    monkeypatch.setattr(gcnsl.spectral.rows, "HELD_BYTES", 2**12)
    monkeypatch.setattr(gcnsl.spectral.rows, "_OPERATOR_ROWS", 37)
    monkeypatch.setattr(gcnsl.spectral.gaussian, "_HELD_BYTES", 0)
    for name, array in arrays.items():
        estimator, features = fitted(method, array, 10, n_anchors=200)
        np.testing.assert_allclose(features, expected[name], atol=2e-7)
        np.testing.assert_allclose(estimator.transform(array), features, atol=1e-7)


def test_a_sparse_matrix_too_large_to_be_dense():
    n, d = 60_000, 500_000  # 224 GiB as a dense float64 matrix
    rng = np.random.default_rng(0)
    column = rng.integers(8, size=n)[:, None] * 4 + rng.integers(6, size=(n, 3))
    x = scipy.sparse.csr_array((np.ones(3 * n, np.float32), column.ravel(), np.arange(0, 3 * n + 1, 3)), shape=(n, d))
    features = esc_anch(x, 6, 300, random_state=0)
    np.testing.assert_allclose(features.T @ features, np.eye(6), atol=1e-4)


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
    if not os.path.exists("/proc/self/status"):
        pytest.skip("peak memory is read from /proc")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 150


def test_copies_held_for_speed_are_not_pickled():
    rows = as_rows(scipy.sparse.csr_array(words(400, 300)))
    size = len(pickle.dumps(rows))
    rows.t_matmul(torch.ones(400, 1, dtype=torch.float64))
    assert len(pickle.dumps(rows)) == size


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_divided_by_a_number(layout, dtype):
    x = words(40, 30).astype(dtype)
    x[::3] *= -1
    rows = as_rows(layout(x))
    rows.t_matmul(torch.ones(40, 1, dtype=torch.float64))
    divided = rows.divided(2.0**300)
    assert rows.divided(1.0) is rows
    assert divided.dtype == rows.dtype
    eye = torch.eye(30, dtype=torch.float64)
    np.testing.assert_array_equal(divided.matmul(eye), rows.matmul(eye) / 2.0**300)
    np.testing.assert_array_equal(divided.t_matmul(divided.matmul(eye)), rows.t_matmul(rows.matmul(eye)) / 2.0**600)
    np.testing.assert_array_equal(divided.negative_rows(), (x < 0).any(1))
    np.testing.assert_allclose(rows.squared_norms(), (x.astype(float) ** 2).sum(1))
