"""SC, ESC and ESC-ANCH against the dense float64 eigendecomposition of G, in every layout of the features."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import torch
from spectral_cases import METHODS, angle, assert_matches_oracle, fitted, layouts, oracle, similarity, words

import gcnsl.spectral.factor
import gcnsl.spectral.gaussian
import gcnsl.spectral.rows
from gcnsl.errors import InputError
from gcnsl.spectral import esc, esc_anch, sc


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    ("shape", "c"),
    [((70, 30), 5), ((500, 260), 12), ((260, 500), 9)],
    ids=["direct", "iterated", "wide"],
)
def test_subspace_is_that_of_the_dense_eigendecomposition(method, dtype, layout, shape, c):
    x = words(*shape)
    array = scipy.sparse.csr_array(x.astype(dtype)) if layout == "csr" else x.astype(dtype)
    estimator, features = fitted(method, array, c, n_anchors=250)
    assert features.dtype == dtype
    assert_matches_oracle(estimator, features, x, c)
    np.testing.assert_allclose(features.T @ features, np.eye(c), atol=1e-10 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "c", "m"), [("cora", 75, 700), ("texas", 35, 100)])
def test_real_features_with_the_papers_sizes(method, name, c, m, data_root):
    import gcnsl

    x = gcnsl.load(name, split=None, root=data_root).x
    estimator, features = fitted(method, x, c, n_anchors=m)
    assert isinstance(features, torch.Tensor)
    assert features.dtype == x.dtype
    dense = x.double().numpy()
    s = similarity(dense, method, anchors=getattr(estimator, "anchors_", None), sigma=getattr(estimator, "sigma_", 1.0))
    values, vectors = oracle(s, c)
    assert angle(features, vectors) < 1e-6
    np.testing.assert_allclose(estimator.singular_values_, np.sqrt(values[:c]), atol=1e-10)
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-6)


def test_mostly_dense_features_go_through_one_pass_and_through_iteration(monkeypatch):
    x = np.random.default_rng(0).random((600, 280)) + words(600, 280)
    for columns in (8, 0):
        monkeypatch.setattr(gcnsl.spectral.factor, "_GRAM_COLUMNS", columns)
        for method, options in (("esc", {}), ("esc-anch", {"n_anchors": 250}), ("esc-anch", {"n_anchors": 100})):
            estimator, features = fitted(method, x, 8, **options)
            assert_matches_oracle(estimator, features, x, 8)


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


def test_a_sparse_matrix_too_large_to_be_dense():
    n, d = 60_000, 500_000  # 224 GiB as a dense float64 matrix
    rng = np.random.default_rng(0)
    column = rng.integers(8, size=n)[:, None] * 4 + rng.integers(6, size=(n, 3))
    x = scipy.sparse.csr_array((np.ones(3 * n, np.float32), column.ravel(), np.arange(0, 3 * n + 1, 3)), shape=(n, d))
    features = esc_anch(x, 6, 300, random_state=0)
    np.testing.assert_allclose(features.T @ features, np.eye(6), atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("method", METHODS)
def test_cuda_agrees_with_the_cpu(method):
    x = torch.from_numpy(words(900, 400))
    expected = fitted(method, x, 12, n_anchors=250)[1]
    for array in (x.cuda(), x.to_sparse_csr().cuda()):
        estimator, features = fitted(method, array, 12, n_anchors=250)
        assert features.device.type == "cuda"
        np.testing.assert_allclose(features.cpu(), expected, atol=1e-6)
        np.testing.assert_allclose(estimator.transform(array).cpu(), expected, atol=1e-6)
        again = fitted(method, array, 12, n_anchors=250)[1]
        assert torch.equal(again, features) or array.layout == torch.sparse_csr
        np.testing.assert_allclose(again.cpu(), features.cpu(), atol=1e-10)
        with pytest.raises(InputError, match="fitted on cuda"):
            estimator.transform(x)


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
