"""Both ways to the singular vectors of P: the sum PᵀP in one pass, and iteration."""

import numpy as np

import gcnsl.spectral.factor

from .cases import assert_matches_oracle, fitted, words


def test_mostly_dense_features_go_through_one_pass_and_through_iteration(monkeypatch):
    x = np.random.default_rng(0).random((600, 280)) + words(600, 280)
    for columns in (8, 0):
        monkeypatch.setattr(gcnsl.spectral.factor, "_GRAM_COLUMNS", columns)
        for method, options in (("esc", {}), ("esc-anch", {"n_anchors": 250}), ("esc-anch", {"n_anchors": 100})):
            estimator, features = fitted(method, x, 8, **options)
            assert_matches_oracle(estimator, features, x, 8)
