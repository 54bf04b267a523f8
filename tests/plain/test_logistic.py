import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from gcnsl.errors import InputError
from gcnsl.graph import from_arrays
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.plain import logistic
from gcnsl.plain.plain_config import LogisticConfig
from gcnsl.sparse import SparseMatrix, from_scipy

from .cases import CLASSES, fit, graph, setup, trained_on
from .test_neighbour_columns import means, views_of


def slow_columns(data, place, rows, hops) -> np.ndarray:
    """All columns, dense and scaled as the docstring says."""
    X, blocks = data.x.double().numpy(), [data.x.double().numpy()]
    for A in map(means, views_of(data)):
        blocks += [np.linalg.matrix_power(A, power) @ X for power in range(1, hops + 1)]
    P = place.double().numpy()
    std = P[rows].std(axis=0)
    P = 0.1 * (P - P[rows].mean(axis=0)) / np.where(std > 1e-6, std, 1) / np.sqrt(P.shape[1])
    return np.hstack([*(block / np.sqrt((X[rows] ** 2).sum() / len(rows)) for block in blocks), P])


@pytest.mark.parametrize(("directed", "classes", "stages"), [(True, 2, 1), (False, 3, 3)])
def test_it_is_scikit_learn_s_on_the_same_columns(directed, classes, stages, monkeypatch) -> None:
    exact = lambda **options: LogisticRegression(**(options | {"tol": 1e-8, "max_iter": 5000}))  # noqa: E731
    monkeypatch.setattr(logistic, "LogisticRegression", exact)
    data = graph(directed=directed, weighted=True)
    model, inputs = setup(LogisticConfig(), data)
    y = trained_on(data.y % classes)
    weight = torch.where(y == 0, 2.0, 1.0)
    rows = np.flatnonzero(y >= 0)
    fit(model, inputs, y, stages=stages, weight=weight)
    columns = slow_columns(data, inputs[1], rows, hops=2)
    reference = exact(C=0.1 * 10 ** ((stages - 1) / 2)).fit(columns[rows], y[rows], weight[rows])
    expected = reference.predict_log_proba(columns)
    found = log_softmax(model(*inputs).double().numpy(), axis=1)[:, :classes]
    np.testing.assert_allclose(found, expected, atol=2e-3)
    if classes < CLASSES:
        assert model(*inputs).softmax(dim=1)[:, classes:].max() < 1e-9, "no training node has this class"


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 12), st.booleans())
def test_the_row_space_keeps_products_and_coefficients(seed, t, m, sparse) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.integers(-2, 3, (t, m)).astype(float)
    reduced, back = logistic._row_space(sp.csr_array(columns) if sparse else columns)
    reduced = reduced.toarray() if sp.issparse(reduced) else reduced
    np.testing.assert_allclose(reduced @ reduced.T, columns @ columns.T, atol=1e-6)
    coefficients = rng.standard_normal((3, reduced.shape[1]))
    if columns.any():
        np.testing.assert_allclose(back(coefficients) @ columns.T, coefficients @ reduced.T, atol=1e-6)


def test_means_that_fill_sparse_features_are_refused_before_they_are_computed() -> None:
    n = 60_000
    x = sp.random_array((n, 2000), density=0.005, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    centre, leaves = np.zeros(n - 1, int), np.arange(1, n)
    star = from_arrays(from_scipy(x), np.stack([centre, leaves]), np.arange(n) % 2)
    model = LogisticConfig().build(2000, 2, n)
    inputs = SparseMatrix(star.x), torch.zeros(n, 36), graph_adjacency(star, self_loops=False, norm="row")
    with pytest.raises(InputError, match=r"2,000 sparse features .* take 3 GiB.* set hops below 2, or use another"):
        fit(model, inputs, star.y)
    few = torch.where(torch.arange(n) < 500, star.y, -1)
    fit(model, inputs, few)
    assert model(*inputs).isfinite().all()
