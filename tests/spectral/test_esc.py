"""ESC and ESC-ANCH where the formulas leave a case open: zero rows, negative features, anchors, ties."""

import numpy as np
import pytest
import scipy.sparse

from gcnsl.spectral import SpectralFeatures, esc_anch

from .cases import assert_matches_oracle, fitted, words


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


def test_a_row_that_shares_no_feature_with_any_anchor_has_zero_features():
    x = np.zeros((40, 10))
    x[:, :4] = words(40, 4, share=0.6)
    x[17] = np.eye(10)[9]
    seed = next(
        s for s in range(20) if 17 not in SpectralFeatures(n_anchors=5, n_components=2, random_state=s).fit(x).anchors_
    )
    features = esc_anch(x, 2, 5, random_state=seed)
    np.testing.assert_array_equal(features[17], 0)
    assert np.abs(features).sum(1).astype(bool).sum() == 39


@pytest.mark.parametrize("method", ["esc", "esc-anch"])
@pytest.mark.parametrize("shape", [(150, 20), (500, 300)])
def test_negative_features_have_degrees_of_at_least_their_own_similarity(method, shape):
    x = words(*shape)
    x -= x.mean(0)  # Σ_j s_ij is zero for every row, up to rounding
    estimator, features = fitted(method, x, 6, n_anchors=shape[0])
    assert_matches_oracle(estimator, features, x, 6, signed=True)
    np.testing.assert_allclose(estimator.transform(x), features, atol=1e-9)


@pytest.mark.parametrize("method", ["esc", "esc-anch"])
def test_a_negative_unseen_row_after_positive_training_is_bounded_too(method):
    seen, row = words(80, 30), words(1, 30, seed=5)
    estimator, features = fitted(method, seen, 4)
    norm, anchors = (
        (np.linalg.norm, seen[estimator.anchors_]) if method == "esc-anch" else (lambda *_, **__: 1.0, np.eye(30))
    )
    a = anchors / np.linalg.norm(anchors, axis=1, keepdims=True)
    r = row / norm(row) @ a.T
    degree = r @ (seen / norm(seen, axis=1, keepdims=True) @ a.T).sum(0)
    opposite = estimator.transform(np.vstack([-row, seen[:1]]))
    # r W d^-1/2 of the row itself, with d = r·Σ_j r_j; that of its negative has d = ‖r‖² instead
    np.testing.assert_allclose(
        opposite[:1], -estimator.transform(row) * np.sqrt(degree) / np.linalg.norm(r), atol=1e-12
    )
    np.testing.assert_allclose(opposite[1:], features[:1], atol=1e-12)


@pytest.mark.parametrize("method", ["esc", "esc-anch"])
@pytest.mark.parametrize("n", [5, 600])
def test_features_of_nothing_are_nothing(method, n):
    for x in (np.zeros((n, 400)), scipy.sparse.csr_array((n, 400))):
        estimator, features = fitted(method, x, 3, n_anchors=250)
        np.testing.assert_array_equal(features, np.zeros((n, 3)))
        np.testing.assert_array_equal(estimator.transform(np.ones((2, 400))), np.zeros((2, 3)))


def test_every_row_is_an_anchor_where_more_are_asked_for():
    x = words(25, 12)
    np.testing.assert_array_equal(esc_anch(x, 4, 1000), esc_anch(x, 4, 25, random_state=3))
    np.testing.assert_array_equal(fitted("esc-anch", x, 4)[0].anchors_, np.arange(25))


def test_disconnected_parts_alike_give_repeated_eigenvalues_and_orthonormal_columns():
    part = words(60, 40)
    x = np.kron(np.eye(9), part)
    estimator, features = fitted("esc", x, 27)
    np.testing.assert_allclose(estimator.eigenvalues_[:9], 1, atol=1e-12)
    alone = fitted("esc", part, 3)[0].eigenvalues_
    np.testing.assert_allclose(estimator.eigenvalues_, np.repeat(alone, 9), atol=1e-10)
    np.testing.assert_allclose(features.T @ features, np.eye(27), atol=1e-9)
