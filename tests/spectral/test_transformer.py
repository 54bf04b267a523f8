"""The transformer against the dense eigendecomposition, on unseen rows, and its saved state."""

import doctest
import json

import hypothesis
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import gcnsl.spectral.transformer
from gcnsl.errors import InputError
from gcnsl.spectral import SpectralFeatures

from .cases import METHODS, assert_matches_oracle, fitted, similarity, words


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("shape", "c", "dtype", "layout"),
    [((70, 30), 5, np.float32, "dense"), ((500, 260), 12, np.float32, "csr"), ((260, 500), 9, np.float64, "dense")],
    ids=["direct", "iterated", "wide"],
)
def test_subspace_is_that_of_the_dense_eigendecomposition(method, dtype, layout, shape, c):
    x = words(*shape)
    array = scipy.sparse.csr_array(x.astype(dtype)) if layout == "csr" else x.astype(dtype)
    estimator, features = fitted(method, array, c, n_anchors=250)
    assert features.dtype == dtype
    assert_matches_oracle(estimator, features, x, c)
    np.testing.assert_allclose(features.T @ features, np.eye(c), atol=1e-10 if dtype == np.float64 else 1e-5)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    shape=st.tuples(st.integers(1, 24), st.integers(1, 12)),
    c=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    lowest=st.sampled_from([-3, 0]),
    method=st.sampled_from(METHODS),
)
def test_any_small_matrix_has_orthonormal_or_zero_columns(shape, c, seed, lowest, method):
    x = np.random.default_rng(seed).integers(lowest, 4, size=shape).astype(np.float64)
    estimator, features = fitted(method, x, c, n_anchors=10)
    assert features.shape == (shape[0], c)
    np.testing.assert_allclose(features.T @ features, np.diag((estimator.eigenvalues_ > 0) * 1.0), atol=1e-5)
    assert (np.diff(estimator.eigenvalues_) <= 0).all()
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_transform_of_unseen_rows_is_the_formula(method):
    seen, unseen = words(120, 50), words(30, 50, seed=1)
    estimator, features = fitted(method, seen, 5)
    if method == "sc":
        norms = (unseen**2).sum(1)[:, None] + (seen**2).sum(1)
        s = np.exp(-(norms - 2 * unseen @ seen.T) / (2 * estimator.sigma_**2))
        degrees = similarity(seen, "sc", sigma=estimator.sigma_).sum(1)
        expected = s / np.sqrt(degrees) @ features / estimator.eigenvalues_ / np.sqrt(s.sum(1, keepdims=True))
    else:
        anchors = np.eye(50) if method == "esc" else seen[estimator.anchors_]
        a = anchors / np.linalg.norm(anchors, axis=1, keepdims=True)
        norm = (lambda x: 1) if method == "esc" else (lambda x: np.linalg.norm(x, axis=1, keepdims=True))
        r_seen, r = seen / norm(seen) @ a.T, unseen / norm(unseen) @ a.T
        p = r_seen / np.sqrt(r_seen @ r_seen.sum(0))[:, None]
        v = p.T @ features / estimator.singular_values_
        expected = r / np.sqrt(r @ r_seen.sum(0))[:, None] @ v / estimator.singular_values_
    np.testing.assert_allclose(estimator.transform(unseen), expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits(method):
    x = scipy.sparse.csr_array(words(700, 400).astype(np.float32))
    first, again, other = (fitted(method, x, 8, n_anchors=60, random_state=s)[1] for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == (method != "esc-anch")


@parametrize_with_checks([SpectralFeatures()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_documented_example():
    assert doctest.testmod(gcnsl.spectral.transformer) == (0, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 80, "n_anchors": 50}, r"n_components\(80\) must be <= n_anchors\(50\)"),
        ({"n_components": 2.5}, r"n_components\(2.5\) must be a whole number >= 1"),
        ({"n_anchors": -1}, r"n_anchors\(-1\) must be >= 1"),
        ({"method": "pca"}, r"method\('pca'\) must be one of sc, esc, esc-anch"),
        ({"scale": "n"}, r"scale\('n'\) must be one of unit, sqrt-n"),
        ({"method": "sc", "sigma": 0}, r"sigma\(0\) must be > 0"),
    ],
)
def test_bad_arguments_are_named_with_value_and_bound(options, message):
    with pytest.raises(InputError, match=message):
        SpectralFeatures(**options).fit(words(100, 10))


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


def array(seed, n=30, d=12, *, dtype=np.float64, layout="dense", share=0.4):
    rng = np.random.default_rng(seed)
    x = torch.from_numpy((rng.standard_normal((n, d)) * (rng.random((n, d)) < share)).astype(dtype))
    return x.to_sparse_csr() if layout == "csr" else x


def through_json(estimator):
    """The state as it comes back from files: plain values through JSON, tensors as copies."""
    plain, tensors = estimator.state()
    return json.loads(json.dumps(plain, allow_nan=False)), {name: value.clone() for name, value in tensors.items()}


@hypothesis.settings(max_examples=80)
@hypothesis.given(
    method=st.sampled_from(METHODS),
    layout=st.sampled_from(["dense", "csr"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 20)),
    c=st.integers(1, 6),
    share=st.sampled_from([0.1, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_a_transformer_from_its_state_gives_the_same_bits(*, method, layout, dtype, shape, c, share, seed):
    x, unseen = (array(s, *shape, dtype=dtype, layout=layout, share=share) for s in (seed, seed + 1))
    estimator = SpectralFeatures(method, n_components=c, n_anchors=9, random_state=np.int64(seed), scale="sqrt-n").fit(
        x
    )
    again = SpectralFeatures.from_state(*through_json(estimator), x)
    assert again.get_params() == estimator.get_params()
    for rows in (x, unseen):
        np.testing.assert_array_equal(again.transform(rows), estimator.transform(rows))
    fitted_attributes = {name for name in vars(estimator) if name.endswith("_")} - {"extension_"}
    assert fitted_attributes == {name for name in vars(again) if name.endswith("_")} - {"extension_"}
    for name in fitted_attributes:
        np.testing.assert_array_equal(getattr(again, name), getattr(estimator, name))
    assert list(again.get_feature_names_out()) == list(estimator.get_feature_names_out())
