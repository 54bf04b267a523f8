"""Rank, sign and scale of the columns, and where the formulas of each method leave a case open."""

import numpy as np
import pytest
import scipy.sparse

from gcnsl.errors import InputError
from gcnsl.spectral import maps

from .cases import METHODS, assert_matches_oracle, fitted, pairwise, words


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 400])
def test_columns_beyond_the_rank_are_zero(method, n):
    x = np.repeat(np.eye(3), [n // 3, n // 3, n - 2 * (n // 3)], axis=0) * [1.0, 2.0, 3.0]
    estimator, features = fitted(method, x, 8)
    np.testing.assert_array_equal(features[:, 3:], 0)
    np.testing.assert_array_equal(estimator.eigenvalues_[3:], 0)
    np.testing.assert_allclose(features[:, :3].T @ features[:, :3], np.eye(3), atol=1e-9)
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-9)


@pytest.mark.parametrize("method", ["esc", "esc-anch"])
def test_zero_rows_have_zero_features_and_change_no_other(method):
    x = words(90, 40)
    holes = [0, 13, 89]
    x[holes] = 0
    rest = np.delete(np.arange(90), holes)
    _, features = fitted(method, x, 4, n_anchors=90)
    _, without = fitted(method, x[rest], 4, n_anchors=90)
    np.testing.assert_array_equal(features[holes], 0)
    np.testing.assert_allclose(features[rest], without, atol=1e-10)


@pytest.mark.parametrize("method", ["esc", "esc-anch"])
@pytest.mark.parametrize("shape", [(150, 20), (500, 300)])
def test_negative_features_have_degrees_of_at_least_their_own_similarity(method, shape):
    x = words(*shape)
    x -= x.mean(0)  # Σ_j s_ij is zero for every row, up to rounding
    estimator, features = fitted(method, x, 6, n_anchors=shape[0])
    assert_matches_oracle(estimator, features, x, 6, signed=True)
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-9)


@pytest.mark.parametrize("method", ["esc", "esc-anch"])
@pytest.mark.parametrize("n", [5, 600])
def test_features_of_nothing_are_nothing(method, n):
    for x in (np.zeros((n, 400)), scipy.sparse.csr_array((n, 400))):
        estimator, features = fitted(method, x, 3, n_anchors=250)
        np.testing.assert_array_equal(features, np.zeros((n, 3)))
        np.testing.assert_array_equal(estimator.transform(np.ones((2, 400))), np.zeros((2, 3)))


def test_sigma_is_the_median_distance_unless_given():
    x = words(40, 15)
    distances = np.sqrt(pairwise(x))[np.triu_indices(40, 1)]
    distances = np.sort(distances[distances > 0])
    assert fitted("sc", x, 2)[0].sigma_ == pytest.approx(distances[(len(distances) - 1) // 2])
    assert fitted("sc", x, 2, sigma=2)[0].sigma_ == 2.0
    assert maps.median_distance(np.repeat(x, 100, axis=0)) == pytest.approx(np.median(distances), rel=0.2)
    assert maps.median_distance(np.ones((5, 2))) == 1.0


@pytest.mark.parametrize("sigma", [1e-200, None, 1e200])
def test_sc_for_any_sigma_and_rows_far_from_all_others(sigma, monkeypatch):
    x = words(50, 20)
    estimator, features = fitted("sc", x, 3, sigma=sigma)
    monkeypatch.setattr(maps, "BLOCK_ENTRIES", 120)  # two rows at a time
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-9)
    if sigma is None:
        np.testing.assert_array_equal(estimator.transform(np.full((1, 20), 1e9)), np.zeros((1, 3)))


def test_sc_of_too_many_rows_is_refused(monkeypatch):
    monkeypatch.setattr(maps, "MOST_BYTES", 8 * 40**2)
    assert fitted("sc", words(40, 15), 2)[1].shape == (40, 2)
    with pytest.raises(InputError, match=r"41 rows need a matrix of .* GiB: use method='esc' or 'esc-anch'"):
        fitted("sc", words(41, 15), 2)
