import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnsl import NodeClassifier
from gcnsl.estimator.explanation import attribute_features, explain, log_odds_of, own_features
from gcnsl.graph import from_arrays

from .cases import EDGES, X, Y

SPARSE = X * (np.random.default_rng(0).random(X.shape) < 0.1)


def fitted(method: str, x=X):
    return NodeClassifier(method, epochs=15, device="cpu").fit(x, Y, edge_index=EDGES).fitted_


WITH_GRADIENTS = ("mlp", "gcn", "gat", "h2gcn-2", "linkx", "geom-gcn", "gcn-sl-cc", "gcn-sl-plus", "logistic")
"""One of each kind; all methods are explained in test_node_classifier.py."""
SPARSE_X = sp.csr_array(SPARSE.astype(np.float32))


@pytest.mark.parametrize(
    ("method", "x"), [*((name, X) for name in WITH_GRADIENTS), ("mlp", SPARSE_X), ("gcn-sl-plus", SPARSE_X)]
)
def test_the_shares_add_up_to_the_change_of_the_log_odds(method, x) -> None:
    model = fitted(method, x)
    log_odds, empty = log_odds_of(model, 4, one=0, other=2)
    with torch.no_grad():
        before, after = float(log_odds(empty)), float(log_odds(own_features(model, 4)))
    logits = model.logits()[4]
    assert after == pytest.approx(float(logits[0] - logits[2]), abs=1e-4)
    shares = attribute_features(model, 4, one=0, other=2, steps=256)
    assert (shares[np.asarray(own_features(model, 4)) == 0] == 0).all() or method == "gcn-sl-cc"
    assert shares.sum() == pytest.approx(after - before, abs=0.01 * max(0.1, np.abs(shares).sum()))


def test_a_linear_model_is_attributed_exactly() -> None:
    model = fitted("mlp")
    with torch.no_grad():
        for lin in model.model.lins:
            lin.bias.fill_(100.0)  # no unit is ever off
    first, last = (lin.weight.detach().numpy() for lin in model.model.lins)
    row = X[4] / np.abs(X[4]).sum()
    expected = row * ((last[0] - last[1]) @ first)
    assert np.allclose(attribute_features(model, 4, one=0, other=1, steps=2), expected, atol=1e-4)


@pytest.fixture(scope="module")
def hubs() -> NodeClassifier:
    """Trained on nodes that point to hub 10 or to hub 11, according to their class."""
    arcs = torch.tensor([[i, 10 + i % 2] for i in range(10)] + [[10, 0]]).T
    x = torch.eye(12)[:, :4] + 0.1
    data = from_arrays(x, arcs, [i % 2 for i in range(12)], directed=True)
    data.feature_names = ["tall", "old", "blue", "round"]
    data.train_mask = torch.arange(12) < 10
    data.val_mask = ~data.train_mask
    data.node_ids = np.array([f"node {i}" for i in range(12)])
    options = {"features_heads": 1, "mean_degree": None, "epsilon": 0.5, "epochs": 5, "device": "cpu"}
    return NodeClassifier("gcn-sl-plus", **options).fit_graph(data)


def test_shared_neighbours_and_features_are_named(hubs) -> None:
    told = explain(hubs, 0)
    twin = next(other for other in told.reconnected if other.id == "node 2")
    links = next(reason for reason in twin.reasons if reason.measure == "links")
    assert links.parts.keys() == {"node 10"}
    assert links.similarity == pytest.approx(1, abs=1e-5)
    assert links.graph == "A* by links"
    assert str(links) == "shared neighbours node 10"
    for other in told.reconnected:
        assert other.reasons
        for reason in other.reasons:
            assert reason.similarity >= 0.5
            if reason.measure == "features":
                assert reason.graph == "A* by features"
                assert reason.parts.keys() <= {"tall", "old", "blue", "round"}


def test_a_neighbour_that_is_shared_in_both_directions_is_named_once() -> None:
    there = torch.tensor([[i, 10 + i % 2] for i in range(10)]).T
    data = from_arrays(torch.eye(12), torch.cat([there, there.flip(0)], 1), [i % 2 for i in range(12)], directed=True)
    data.train_mask = torch.arange(12) < 10
    data.val_mask = ~data.train_mask
    options = {"direction": "both", "mean_degree": None, "epsilon": 0.5, "epochs": 3, "device": "cpu"}
    told = explain(NodeClassifier("gcn-sl-plus", **options).fit_graph(data), 0)
    twin = next(other for other in told.reconnected if other.id == 2)
    (links,) = twin.reasons
    assert (set(links.parts), links.others) == ({10}, 0)
    assert links.parts[10] == pytest.approx(1, abs=1e-5), "the parts of both directions"
