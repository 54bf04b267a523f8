"""SC, ESC and ESC-ANCH against the dense float64 eigendecomposition of G, and every rule the paper leaves open."""

import doctest
import os
import pickle
import subprocess
import sys
import warnings

import hypothesis
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import gcnsl.spectral.estimator
import gcnsl.spectral.factor
import gcnsl.spectral.gaussian
import gcnsl.spectral.rows
from gcnsl.errors import InputError
from gcnsl.spectral import SpectralFeatures, eigen, esc, esc_anch, sc
from gcnsl.spectral.eigen import direct_size, leading_eigenpairs
from gcnsl.spectral.gaussian import median_distance
from gcnsl.spectral.reading import as_rows

METHODS = ["sc", "esc", "esc-anch"]
CPU = torch.device("cpu")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Work on small matrices in one thread: on a busy machine several only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


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


# Exactness


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


# The eigensolver


def with_spectrum(values, *, seed=0):
    values = np.sort(np.asarray(values, dtype=np.float64))[::-1]
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return torch.from_numpy((q * values) @ q.T), values, q


@pytest.mark.parametrize("form", ["matrix", "products"])
@pytest.mark.parametrize(
    "head",
    [
        [1, 0.9, 0.8, 0.7, 0.6, 0.5],
        [1] * 6,
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.9, 0.8],
        [1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4],
        [1e-9, 5e-10],
        [0.0, 0.0, 0.0],
    ],
    ids=["plain", "all-equal", "twelve-copies", "nine-copies", "tiny", "zero"],
)
@pytest.mark.parametrize("tail", [0.3, 0.0], ids=["bulk", "rank-deficient"])
def test_leading_eigenpairs_with_repeated_and_vanishing_eigenvalues(form, head, tail):
    count = len(head)
    assert direct_size(count) < 400
    bulk = head[-1] * tail * np.linspace(0, 1, 400 - count) ** 2
    matrix, values, q = with_spectrum([*head, *bulk])
    found, vectors = leading_eigenpairs(matrix if form == "matrix" else matrix.matmul, 400, count, device=CPU)
    np.testing.assert_allclose(found, values[:count], atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-8 * max(head))
    if head[-1] > 0:
        assert angle(vectors.numpy(), q[:, :count]) < 1e-6


@pytest.mark.parametrize(("copies", "blocks"), [(3, [4]), (4, [4, 9]), (7, [4, 9]), (8, [4, 9]), (9, [4])])
def test_as_many_equal_eigenvalues_as_a_block_holds_are_looked_for_again(copies, blocks, monkeypatch):
    """Fewer copies than the block is wide cannot hide others; nine are a tie, of which any nine will do."""
    widths = []

    class Recorded(eigen._Krylov):
        def __init__(self, multiply, start, *rest):
            widths.append(len(start))
            super().__init__(multiply, start, *rest)

    monkeypatch.setattr(eigen, "_Krylov", Recorded)
    below = 0.5 * 0.8 ** np.arange(300 - copies)
    matrix, values, _ = with_spectrum([1.0] * copies + list(below))
    found, _ = leading_eigenpairs(matrix.matmul, 300, 9, device=CPU)
    np.testing.assert_allclose(found, values[:9], atol=1e-12)
    assert widths == blocks


def test_a_tie_at_the_last_place_gives_some_of_the_tied_vectors():
    matrix, _, q = with_spectrum([1, 0.8, 0.5, 0.5, 0.5, *np.linspace(0, 0.3, 395)])
    _, vectors = leading_eigenpairs(matrix.matmul, 400, 3, device=CPU)
    span = q[:, :5]
    np.testing.assert_allclose(span @ (span.T @ vectors.numpy()), vectors, atol=1e-9)
    np.testing.assert_array_equal(vectors, leading_eigenpairs(matrix.matmul, 400, 3, device=CPU)[1])


def test_a_flat_spectrum_is_handed_to_lapack():
    matrix, values, _ = with_spectrum(1 + 1e-9 * np.linspace(0, 1, 300))
    found, vectors = leading_eigenpairs(matrix.matmul, 300, 4, device=CPU)
    np.testing.assert_allclose(found, values[:4], atol=1e-13)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=1e-12)


# Layouts, devices, dtypes


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


# Unseen rows


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


# What the formulas leave open


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


# Signs, scale, seeds


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(90, 40), (700, 400)])
def test_the_same_seed_gives_the_same_bits(method, shape):
    x = scipy.sparse.csr_array(words(*shape).astype(np.float32))
    first, again, other = (fitted(method, x, 8, n_anchors=60, random_state=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first[1], again[1])
    assert np.array_equal(first[1], other[1]) == (method != "esc-anch")


def test_sigma_is_the_median_distance_unless_given():
    x = words(40, 15)
    distances = np.sqrt(pairwise(x))[np.triu_indices(40, 1)]
    distances = np.sort(distances[distances > 0])
    assert fitted("sc", x, 2)[0].sigma_ == pytest.approx(distances[(len(distances) - 1) // 2])
    assert fitted("sc", x, 2, sigma=2)[0].sigma_ == 2.0
    assert median_distance(as_rows(np.repeat(x, 100, axis=0))) == pytest.approx(np.median(distances), rel=0.2)
    assert median_distance(as_rows(np.ones((5, 2)))) == 1.0


# scikit-learn, errors, memory


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
