import numpy as np
import pytest
import torch

from gcnsl import NodeClassifier
from gcnsl.estimator.explanation import explain
from gcnsl.estimator.similarity_reasons import Reason
from gcnsl.graph import from_arrays

IDS = np.array([f"node {i}" for i in range(12)])


@pytest.fixture(scope="module")
def classifier() -> NodeClassifier:
    """Trained on nodes that point to hub 10 or to hub 11, according to their class."""
    arcs = torch.tensor([[i, 10 + i % 2] for i in range(10)] + [[10, 0]]).T
    x = torch.eye(12)[:, :4] + 0.1
    data = from_arrays(x, arcs, [i % 2 for i in range(12)], directed=True)
    data.feature_names = ["tall", "old", "blue", "round"]
    data.train_mask = data.val_mask = torch.ones(12, 1, dtype=torch.bool)
    data.node_ids = IDS
    options = {"features_heads": 1, "mean_degree": None, "epsilon": 0.5, "epochs": 5, "device": "cpu"}
    return NodeClassifier("gcn-sl-plus", **options).fit_graph(data)


def test_shared_neighbours_and_features_are_named(classifier) -> None:
    told = explain(classifier, 0)
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


def test_those_that_are_not_joined_have_no_reason(classifier) -> None:
    for node in range(12):
        for other in explain(classifier, node).original:
            assert bool(other.reasons) == other.reconnected


def test_a_neighbour_that_is_shared_in_both_directions_is_named_once() -> None:
    there = torch.tensor([[i, 10 + i % 2] for i in range(10)]).T
    data = from_arrays(torch.eye(12), torch.cat([there, there.flip(0)], 1), [i % 2 for i in range(12)], directed=True)
    data.train_mask = data.val_mask = torch.ones(12, 1, dtype=torch.bool)
    options = {"direction": "both", "mean_degree": None, "epsilon": 0.5, "epochs": 3, "device": "cpu"}
    told = explain(NodeClassifier("gcn-sl-plus", **options).fit_graph(data), 0)
    twin = next(other for other in told.reconnected if other.id == 2)
    (links,) = twin.reasons
    assert (set(links.parts), links.others) == ({10}, 0)
    assert links.parts[10] == pytest.approx(1, abs=1e-5), "the parts of both directions"


def test_in_words() -> None:
    assert str(Reason("A*", 0.9, "features", {"tall": 0.5, "old": 0.1}, 1200)) == "features tall, old and 1,200 more"
    assert str(Reason("A*", 0.9, "links", {}, 0)).startswith("no shared neighbours, but neighbours that count alike")
