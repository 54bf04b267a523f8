"""The width of the Gaussian, and rows that are similar to no other."""

import numpy as np
import pytest

from gcnsl.spectral.gaussian import median_distance
from gcnsl.spectral.rows import as_rows

from .cases import fitted, pairwise, words


def test_sigma_is_the_median_distance_unless_given():
    x = words(40, 15)
    distances = np.sqrt(pairwise(x))[np.triu_indices(40, 1)]
    distances = np.sort(distances[distances > 0])
    assert fitted("sc", x, 2)[0].sigma_ == pytest.approx(distances[(len(distances) - 1) // 2])
    assert fitted("sc", x, 2, sigma=2)[0].sigma_ == 2.0
    assert median_distance(as_rows(np.repeat(x, 100, axis=0))) == pytest.approx(np.median(distances), rel=0.2)
    assert median_distance(as_rows(np.ones((5, 2)))) == 1.0


def test_rows_far_from_all_training_rows_have_zero_features():
    estimator, _ = fitted("sc", words(50, 20), 3)
    np.testing.assert_array_equal(estimator.transform(np.full((1, 20), 1e9)), np.zeros((1, 3)))


def test_an_extreme_sigma_makes_rows_all_similar_or_none():
    x = words(40, 15)
    x = np.unique(x, axis=0)
    for sigma in (1e-200, 1e-150):
        np.testing.assert_allclose(fitted("sc", x, 2, sigma=sigma)[0].eigenvalues_, 1, atol=1e-12)
    for sigma in (1e200, 1e150):
        np.testing.assert_allclose(fitted("sc", x, 2, sigma=sigma)[0].eigenvalues_, [1, 0], atol=1e-12)
