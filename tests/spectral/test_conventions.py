"""Rank, sign and scale of the columns, alike for all methods."""

import numpy as np
import pytest

from gcnsl.spectral import esc

from .cases import METHODS, fitted, words


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 400])
def test_columns_beyond_the_rank_are_zero(method, n):
    x = np.repeat(np.eye(3), [n // 3, n // 3, n - 2 * (n // 3)], axis=0) * [1.0, 2.0, 3.0]
    estimator, features = fitted(method, x, 8)
    np.testing.assert_array_equal(features[:, 3:], 0)
    np.testing.assert_array_equal(estimator.eigenvalues_[3:], 0)
    np.testing.assert_allclose(features[:, :3].T @ features[:, :3], np.eye(3), atol=1e-9)
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_more_components_than_rows(method):
    x = words(6, 50)
    estimator, features = fitted(method, x, 20)
    assert features.shape == (6, 20)
    np.testing.assert_array_equal(features[:, 6:], 0)
    np.testing.assert_allclose(features.T @ features, np.diag(estimator.eigenvalues_ > 0), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_constant_features_and_a_single_row(method):
    for n in (1, 9):
        estimator, features = fitted(method, np.full((n, 5), 2.0), 3, scale="sqrt-n")
        np.testing.assert_allclose(features, [[1, 0, 0]] * n, atol=1e-9)
        np.testing.assert_allclose(estimator.eigenvalues_, [1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_entry_of_largest_magnitude_is_positive(method):
    _, features = fitted(method, words(200, 60), 6)
    largest = np.abs(features).argmax(0)
    assert (features[largest, np.arange(6)] > 0).all()


def test_between_equal_magnitudes_the_first_is_positive():
    features = esc(np.array([[2.0, 1.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]]), 2)
    np.testing.assert_allclose(features, [[0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [0.5, -0.5]], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_scale_by_the_root_of_n(method):
    x = words(300, 60)
    unit, scaled = fitted(method, x, 5)[1], fitted(method, x, 5, scale="sqrt-n")[1]
    np.testing.assert_allclose(scaled, unit * np.sqrt(300), rtol=1e-10)
