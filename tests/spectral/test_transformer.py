"""The transformer: unseen rows, scikit-learn's conventions, bad input."""

import doctest
import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from spectral_cases import METHODS, fitted, similarity, words

import gcnsl.spectral.estimator
from gcnsl.errors import InputError
from gcnsl.spectral import SpectralFeatures, esc
from gcnsl.spectral.reading import as_rows


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", ["unit", "sqrt-n"])
def test_transform_of_the_training_rows_is_fit_transform(method, scale):
    x = words(300, 220)
    x[7] = 0
    estimator, features = fitted(method, x, 6, scale=scale)
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-8)
    np.testing.assert_allclose(estimator.transform(scipy.sparse.csr_array(x[40:41])), features[40:41], atol=1e-8)


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


def test_a_pickled_transformer_gives_the_same_bits():
    x = scipy.sparse.csr_array(words(400, 300)) * -1.0
    for method in METHODS:
        estimator, _ = fitted(method, x, 5)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimator)).transform(x), estimator.transform(x))
    rows = as_rows(x)
    size = len(pickle.dumps(rows))
    rows.t_matmul(torch.ones(400, 1, dtype=torch.float64))
    assert len(pickle.dumps(rows)) == size, "copies held for speed are not worth storing"


def test_rows_far_from_all_training_rows_have_zero_features():
    estimator, _ = fitted("sc", words(50, 20), 3)
    np.testing.assert_array_equal(estimator.transform(np.full((1, 20), 1e9)), np.zeros((1, 3)))


@parametrize_with_checks([SpectralFeatures(method) for method in METHODS])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_documented_example():
    assert doctest.testmod(gcnsl.spectral.estimator) == (0, 2)


def test_feature_names_and_clone():
    estimator = SpectralFeatures("esc", n_components=2)
    assert list(clone(estimator).fit(words(10, 4)).get_feature_names_out()) == [
        "spectralfeatures0",
        "spectralfeatures1",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 80, "n_anchors": 50}, r"n_components\(80\) must be <= n_anchors\(50\)"),
        ({"n_components": 0}, r"n_components\(0\) must be a whole number >= 1"),
        ({"n_components": 2.5}, r"n_components\(2.5\) must be a whole number >= 1"),
        ({"n_components": True}, r"n_components\(True\) must be"),
        ({"n_anchors": -1}, r"n_anchors\(-1\) must be a whole number >= 1"),
        ({"method": "pca"}, r"method\('pca'\) must be one of \('sc', 'esc', 'esc-anch'\)"),
        ({"scale": "n"}, r"scale\('n'\) must be one of \('unit', 'sqrt-n'\)"),
        ({"method": "sc", "sigma": 0}, r"sigma\(0\) must be a positive number"),
        ({"method": "sc", "sigma": "wide"}, r"sigma\('wide'\) must be a positive number"),
    ],
)
def test_bad_arguments_are_named_with_value_and_bound(options, message):
    with pytest.raises(InputError, match=message):
        SpectralFeatures(**options).fit(words(100, 10))


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
    with pytest.raises(InputError, match="X has 3 features, but SpectralFeatures was fitted to 4"):
        SpectralFeatures(n_components=2).fit(torch.ones(9, 4)).transform(torch.ones(2, 3))


def test_large_sums_do_not_look_infinite():
    x = np.full((4, 3), 1e38, dtype=np.float32)
    np.testing.assert_allclose(esc(x, 1), np.full((4, 1), 0.5), atol=1e-6)
