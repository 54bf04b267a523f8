"""Features to test with, and the slow, literal spectral features to test against."""

import warnings

import numpy as np
import scipy.linalg
import scipy.sparse
import torch

from gcnsl.spectral import SpectralFeatures

METHODS = ["sc", "esc", "esc-anch"]


def words(n, d, *, seed=0, share=0.1):
    """A bag of words with classes, so that the spectrum has something to show."""
    rng = np.random.default_rng(seed)
    chance = share * rng.gamma(1.0, size=(5, d)).clip(0.05, 5)
    x = (rng.random((n, d)) < chance[rng.integers(5, size=n)]).astype(np.float64)
    x[x.sum(1) == 0, 0] = 1
    return x * rng.integers(1, 4, size=(n, d))


def similarity(x, method, *, anchors=None, sigma=None):
    """The n × n similarity S of the paper, literally."""
    if method == "esc":
        return x @ x.T
    if method == "esc-anch":
        norm = np.linalg.norm(x, axis=1, keepdims=True)
        unit = np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)
        r = unit @ unit[anchors].T
        return r @ r.T
    return np.exp(-pairwise(x) / (2 * sigma**2))


def pairwise(x):
    """‖x_i - x_j‖²."""
    norms = (x**2).sum(1)
    return np.maximum(norms[:, None] + norms - 2 * x @ x.T, 0)


def oracle(s, c, *, signed=False):
    """The c leading eigenpairs of G = D^-1/2 S D^-1/2 and the next eigenvalue, by LAPACK on the dense matrix."""
    degree = np.maximum(s.sum(1), np.diag(s)) if signed else s.sum(1)
    root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    first = max(0, len(s) - c - 1)
    values, vectors = scipy.linalg.eigh(root[:, None] * s * root, subset_by_index=[first, len(s) - 1])
    return values[::-1], vectors[:, ::-1][:, :c]


def angle(a, b):
    """Sine of the largest principal angle between two column spaces of equal dimension."""
    a, b = np.linalg.qr(np.asarray(a, dtype=np.float64))[0], np.linalg.qr(b)[0]
    return np.linalg.norm(a - b @ (b.T @ a), 2)


def fitted(method, x, c, **options):
    estimator = SpectralFeatures(method, n_components=c, **{"n_anchors": max(c, 60), "random_state": 0, **options})
    return estimator, estimator.fit_transform(x)


def assert_matches_oracle(estimator, features, x, c, *, signed=False):
    anchors, sigma = getattr(estimator, "anchors_", None), getattr(estimator, "sigma_", None)
    s = similarity(x, estimator.method, anchors=anchors, sigma=sigma)
    values, vectors = oracle(s, c, signed=signed)
    assert values[c - 1] - values[c] > 1e-6, "the oracle's subspace must be unique for the comparison to mean anything"
    np.testing.assert_allclose(estimator.eigenvalues_, values[:c], atol=1e-12)
    np.testing.assert_allclose(estimator.singular_values_, np.sqrt(values[:c]), atol=1e-10)
    assert angle(features, vectors) < 1e-6


def layouts(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that its CSR tensors are in beta
        torch_csr = torch.from_numpy(x).to_sparse_csr()
    return {
        "numpy": x,
        "fortran": np.asfortranarray(x),
        "reversed twice": x[::-1].copy()[::-1],
        "csr": scipy.sparse.csr_array(x),
        "csr matrix": scipy.sparse.csr_matrix(x),
        "csc": scipy.sparse.csc_array(x),
        "torch": torch.from_numpy(x),
        "torch csr": torch_csr,
        "torch coo": torch.from_numpy(x).to_sparse_coo(),
        "torch with gradient": torch.from_numpy(x).requires_grad_(),
    }
