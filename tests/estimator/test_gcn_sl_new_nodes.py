"""Prediction for nodes that came after training."""

import numpy as np
import pytest
import scipy.sparse as sp

from gcnsl import InputError

from .cases import EDGES, N, X, fitted

NEW = 7
RNG = np.random.default_rng(0)
GROWN_X = np.vstack([X, X[RNG.integers(N, size=NEW)] + (RNG.random((NEW, 20)) < 0.1)])
NEW_EDGES = np.stack([N + np.arange(NEW), RNG.integers(N, size=NEW)])
GROWN_EDGES = np.hstack([EDGES, NEW_EDGES, [[N], [N + 1]]])


def transcription(model, x, edges, *, shift_column) -> np.ndarray:
    """The paper's formulas with dense matrices, in float64; a new node is similar to training nodes and to itself."""
    n = len(x)
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    weights = {name: value.double().numpy() for name, value in model.model_.state_dict().items()}

    anchors = x[model.fitted_.prepared.precomputed.transformer.anchors_]
    r = x @ anchors.T
    degree = r @ r[:N].sum(0)
    p = r / np.sqrt(degree)[:, None]
    f_train = model.fitted_.prepared.precomputed.values.double().numpy()
    f = np.vstack([f_train, p[N:] @ (p[:N].T @ f_train / model.fitted_.prepared.precomputed.transformer.eigenvalues_)])

    a = np.eye(n)
    a[edges[0], edges[1]] = a[edges[1], edges[0]] = 1
    d = a.sum(1)
    a_hat = a / np.sqrt(d[:, None] * d)

    x = x.copy()
    x[:, shift_column] += 0.5
    xq = x @ weights["similarity.weight"].T
    z = xq / np.linalg.norm(xq, axis=1, keepdims=True)
    s = z @ z.T
    s[:, N:] = 0
    s[np.arange(N, n), np.arange(N, n)] = 1
    a_star = np.where(s >= model.epsilon, s, 0)
    a_star /= a_star.sum(1, keepdims=True)

    h = np.maximum(np.hstack([x @ weights["lin_x.weight"].T, f @ weights["lin_spectral.weight"].T]), 0)
    h_cb = np.hstack([h, a_hat @ h, a_hat @ a_hat @ h, a_star @ h])
    return np.maximum(weights["gate"] * h_cb, 0) @ weights["lin_out.weight"].T


@pytest.mark.parametrize("epsilon", [0.5, 0.95])
def test_it_is_the_formula(epsilon) -> None:
    model = fitted(epsilon=epsilon)
    column = int(np.random.default_rng(model.fitted_.prepared.seed).integers(20))
    logits = transcription(model, GROWN_X, GROWN_EDGES, shift_column=column)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    probabilities = model.predict_proba(GROWN_X, edge_index=GROWN_EDGES)
    np.testing.assert_allclose(probabilities, odds / odds.sum(1, keepdims=True), atol=1e-5)
    assert (model.predict(GROWN_X, edge_index=GROWN_EDGES) == logits.argmax(1)).all()


@pytest.mark.parametrize("options", [{}, {"n_components": 0}, {"spectral_method": "sc"}, {"epsilon": 0.3}])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_without_new_nodes_nothing_changes_by_a_bit(options, layout) -> None:
    model = fitted(layout(X), **options)
    assert (model.predict_proba(layout(X), edge_index=EDGES) == model.predict_proba()).all()


@pytest.mark.parametrize("method", ["esc-anch", "esc", "sc"])
def test_a_new_node_is_judged_by_itself_and_the_training_nodes(method) -> None:
    model = fitted(spectral_method=method)
    together = model.predict_proba(GROWN_X, edge_index=np.hstack([EDGES, NEW_EDGES[:, :1]]))
    alone = model.predict_proba(GROWN_X[: N + 1], edge_index=np.hstack([EDGES, NEW_EDGES[:, :1]]))
    np.testing.assert_allclose(together[: N + 1], alone, atol=1e-6)


def test_a_copy_of_a_training_node_is_classified_like_it() -> None:
    model = fitted(use_adjacency=False)
    grown = model.predict_proba(np.vstack([X, X[:5]]), edge_index=EDGES)
    np.testing.assert_allclose(grown[:N], model.predict_proba(), atol=1e-6)
    assert (grown[N:].argmax(1) == grown[:5].argmax(1)).all()


def test_layouts_may_be_mixed() -> None:
    dense, sparse = fitted(), fitted(sp.csr_array(X))
    for model in (dense, sparse):
        given = [model.predict_proba(layout(GROWN_X), edge_index=GROWN_EDGES) for layout in (np.asarray, sp.csr_array)]
        np.testing.assert_allclose(*given, atol=1e-6)


def test_another_graph_is_refused() -> None:
    model = fitted(epochs=1)
    with pytest.raises(InputError, match="it has 50 nodes, and training had 90"):
        model.predict(X[:50], edge_index=EDGES[:, :0])
    with pytest.raises(InputError, match="its nodes have 19 features, and those in training had 20"):
        model.predict(GROWN_X[:, 1:], edge_index=GROWN_EDGES)
    for layout in (np.asarray, sp.csr_array):
        changed = GROWN_X.copy()
        changed[[4, 60], 3] += 1
        with pytest.raises(InputError, match=r"feature 3 of node 4 is .*, and was .* in training; a grown graph holds"):
            model.predict(layout(changed), edge_index=GROWN_EDGES)
    with pytest.raises(InputError, match="give both X and edge_index"):
        model.predict(GROWN_X)
    with pytest.raises(InputError, match="give both X and edge_index"):
        model.predict(edge_index=GROWN_EDGES)
