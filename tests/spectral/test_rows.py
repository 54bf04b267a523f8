"""Products in blocks: memory stays bounded, and the block size does not matter."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import gcnsl.spectral.rows
from gcnsl.spectral import esc_anch

from .cases import METHODS, fitted, words


@pytest.mark.parametrize("method", METHODS)
def test_small_blocks_change_nothing(method, monkeypatch):
    x = words(300, 210)
    arrays = {"numpy": x, "csr": scipy.sparse.csr_array(x), "dense": x + 0.5}
    expected = {name: fitted(method, array, 10, n_anchors=200)[1] for name, array in arrays.items()}
    monkeypatch.setattr(gcnsl.spectral.rows, "BLOCK_BYTES", 2**15)
    monkeypatch.setattr(gcnsl.spectral.rows, "HELD_BYTES", 2**12)
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
