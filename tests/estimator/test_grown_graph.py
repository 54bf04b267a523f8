"""A graph that has grown since training: nodes are found in any order, and predicted as the paper says."""

import numpy as np
import pytest
import scipy.sparse as sp

from gcnsl import InputError, from_arrays
from gcnsl.estimator.given_graph import in_training_order
from gcnsl.graph.edges import edge_parts

from .cases import EDGES, TRUTH, N, X, fitted

IDS = np.array([f"n{i}" for i in range(N)])
NEW = 5
RNG = np.random.default_rng(1)
GROWN_X = np.vstack([X, X[:NEW] + (RNG.random((NEW, 20)) < 0.1)])
GROWN_EDGES = np.hstack([EDGES, np.stack([N + np.arange(NEW), RNG.integers(N, size=NEW)])])
GROWN_IDS = np.array([*IDS, *(f"new{i}" for i in range(NEW))])
ORDER = RNG.permutation(N + NEW)


def shuffled(x=GROWN_X, edges=GROWN_EDGES, ids=GROWN_IDS, order=ORDER, wrap=lambda x: x):
    """The graph with its rows in another order."""
    return from_arrays(wrap(x[order]), np.argsort(order)[edges], node_ids=ids[order])


@pytest.fixture(scope="module")
def named():
    return fitted(fit={"node_ids": IDS})


@pytest.mark.parametrize("wrap", [lambda x: x, sp.csr_array])
def test_rows_may_come_in_any_order(wrap) -> None:
    named = fitted(wrap(X), fit={"node_ids": IDS})
    expected = named.predict_proba(wrap(GROWN_X), edge_index=GROWN_EDGES)
    found = named.predict_proba_graph(shuffled(wrap=wrap))
    assert (found == expected[ORDER]).all()


def test_arcs_and_weights_are_reordered_with_the_nodes() -> None:
    weight = RNG.random(GROWN_EDGES.shape[1]) + 0.5
    model = fitted(fit={"node_ids": IDS, "directed": True, "edge_weight": weight[: EDGES.shape[1]]})
    arcs = {"directed": True, "edge_weight": weight}
    other = from_arrays(GROWN_X[ORDER], np.argsort(ORDER)[GROWN_EDGES], node_ids=GROWN_IDS[ORDER], **arcs)
    ordered, place = in_training_order(model.graph_, other)
    expected = from_arrays(GROWN_X, place[np.argsort(ORDER)][GROWN_EDGES], **arcs)
    assert list(edge_parts(ordered)) == ["edge_index", "edge_weight", "arc_index", "arc_weight"]
    for name, part in edge_parts(ordered).items():
        assert part.equal(expected[name]), name
    found = model.predict_proba_graph(other)
    assert (found == model.predict_proba(GROWN_X, edge_index=GROWN_EDGES, edge_weight=weight)[ORDER]).all()


def changed(x, node, column):
    x = x.copy()
    x[node, column] += 1.5
    return x


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: from_arrays(GROWN_X[:, :9], GROWN_EDGES), "its nodes have 9 features, and those in training had 20"),
        (
            lambda: from_arrays(GROWN_X[2:], [[], []], node_ids=GROWN_IDS[2:]),
            f"2 of the {N} nodes in training are not in it, the first is 'n0'",
        ),
        (lambda: from_arrays(X[:9], [[], []]), f"it has 9 nodes, and training had {N}"),
        (lambda: shuffled(changed(GROWN_X, 4, 7)), r"feature 7 of node 'n4' is [\d.]+, and was [\d.]+ in training"),
        (
            lambda: from_arrays(
                changed(X, 4, 7), EDGES, TRUTH, node_ids=IDS, feature_names=[f"f{i}" for i in range(20)]
            ),
            "feature 'f7' of node 'n4' is",
        ),
    ],
)
def test_a_model_for_another_graph_says_what_differs(named, data, message) -> None:
    with pytest.raises(InputError, match=f"the model is for another graph than this one: {message}"):
        named.predict_proba_graph(data())


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
    return np.maximum(weights["gate"] * h_cb, 0) @ weights["lin_out.weight"].T / model.temperature_


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
    together = model.predict_proba(GROWN_X, edge_index=np.hstack([EDGES, [[N], [3]]]))
    alone = model.predict_proba(GROWN_X[: N + 1], edge_index=np.hstack([EDGES, [[N], [3]]]))
    np.testing.assert_allclose(together[: N + 1], alone, atol=1e-6)
