"""Kinds of edges from the tables to predictions: what they bring, saved models, grown graphs and explanations."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest

from gcnsl import InputError, NodeClassifier, from_tables
from gcnsl.graph.masks import GraphWarning

N, NEW = 300, 30
METHODS = {
    "sage": {"epochs": 60},
    "gcn": {"epochs": 60},
    "linkx": {"epochs": 60},
    "boosted-trees": {"trees": 60},
}
every_method = pytest.mark.parametrize("method", METHODS)


def tables(n: int = N, *, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes of two classes with weak features; friends are alike in class, and foes as often are not.

    Without their kinds, edges tell nothing. A tenth of the edges has a rare kind that says nothing either.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    nodes = pd.DataFrame(rng.normal(size=(n, 4)) + 0.4 * y[:, None] * [1, 1, 0, 0], columns=list("abcd"))
    nodes.insert(0, "id", [f"n{number}" for number in range(n)])
    split = np.where(np.arange(n) % 2, "train", np.where(np.arange(n) % 4, "test", "val"))
    nodes = nodes.assign(label=np.array(["good", "fraud"])[y], split=split)
    source = np.repeat(np.arange(n), 8)
    kind = rng.permutation(np.resize(["friend", "foe"], len(source))).astype(object)
    agrees = (kind == "friend") ^ (rng.random(len(source)) < 0.1)
    target = np.array([rng.choice(np.flatnonzero((y == y[u]) == same)) for u, same in zip(source, agrees, strict=True)])
    kind[rng.random(len(source)) < 0.1] = "colleague"
    ids = nodes["id"].to_numpy()
    return nodes, pd.DataFrame({"source": ids[source], "target": ids[target], "kind": kind})


def signed(edges: pd.DataFrame) -> pd.DataFrame:
    """The same with weights of both signs in place of kinds."""
    weight = edges["kind"].map({"friend": 2.0, "foe": -1.0, "colleague": 0.5})
    return edges.drop(columns="kind").assign(weight=weight)


def without_kinds(graph):
    """The same graph, with the same columns of nodes."""
    graph = copy.copy(graph)
    del graph["edge_relations"]
    graph.columns = copy.copy(graph.columns)
    return graph


def fitted(graph, method: str, **options) -> NodeClassifier:
    options = METHODS[method] | {"random_state": 0, "device": "cpu", "verbose": False} | options
    return NodeClassifier(method, **options).fit_graph(graph)


def accuracy(graph, method: str) -> float:
    predicted = fitted(graph, method).predict() == np.array(graph.class_names)[graph.y]
    return float(predicted[graph.test_mask.numpy()].mean())


@pytest.mark.usefixtures("single_thread")
@every_method
@pytest.mark.parametrize("by", ["kind", "sign"])
def test_kinds_of_edges_tell_what_edges_alone_do_not(method, by) -> None:
    nodes, edges = tables()
    how = {"edge_type": "kind"} if by == "kind" else {}
    graph = from_tables(nodes, edges if by == "kind" else signed(edges), **how)
    with_kinds, without = accuracy(graph, method), accuracy(without_kinds(graph), method)
    assert with_kinds > without + 0.1, f"{with_kinds:.2f} and {without:.2f}"


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Tables as they were in training, and as they have grown, with new kinds of edges."""
    nodes, edges = tables(N + NEW)
    ids = set(nodes["id"][:N])
    known = edges["source"].isin(ids) & edges["target"].isin(ids)
    later = edges.copy()
    later.loc[later.index[~known][:5], "kind"] = "loan"
    return (nodes[:N], edges[known]), (nodes.sample(frac=1, random_state=0), later)


@pytest.mark.usefixtures("single_thread")
@every_method
def test_a_grown_graph_is_read_and_predicted_as_in_training(method, grown, tmp_path) -> None:
    (nodes, edges), (all_nodes, all_edges) = grown
    graph = from_tables(nodes, edges, edge_type="kind")
    model = fitted(graph, method)
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model", device="cpu")
    assert (again.predict_proba() == model.predict_proba()).all()
    assert (again.predict_proba_graph(from_tables(nodes, edges, encoder=again.encoder_)) == model.predict_proba()).all()
    with pytest.warns(GraphWarning, match="5 edges are of kinds that training did not have, such as 'loan'"):
        later = from_tables(all_nodes, all_edges, encoder=again.encoder_)
    found = again.predict_proba_graph(later)
    relabelled = all_edges.replace({"kind": {"loan": "foe"}})
    other = again.predict_proba_graph(from_tables(all_nodes, relabelled, encoder=again.encoder_))
    assert not (found == other).all(), "what the kind of a new edge is makes a difference"
    if method != "linkx":  # whose weights of single links need more nodes than these
        new = ~all_nodes["id"].isin(nodes["id"]).to_numpy()
        right = again.classes_[found.argmax(axis=1)] == all_nodes["label"].to_numpy()
        assert right[new].mean() > 0.7


@every_method
def test_a_grown_graph_needs_the_kinds_that_training_had(method, grown) -> None:
    (nodes, edges), _ = grown
    model = fitted(from_tables(nodes, edges, edge_type="kind"), method, **({} if "tree" in method else {"epochs": 2}))
    with pytest.raises(InputError, match="no column 'kind', which the model was trained with"):
        from_tables(nodes, edges.drop(columns="kind"), encoder=model.encoder_)
    with pytest.raises(InputError, match="was trained with the edges' kinds, which the grown graph does not have"):
        model.predict_proba_graph(without_kinds(from_tables(nodes, edges, encoder=model.encoder_)))
    fewer = from_tables(nodes, edges[edges["kind"] != "foe"], edge_type="kind")
    with pytest.raises(InputError, match="its kinds of edges are friend, colleague, and those in training were fr"):
        model.predict_proba_graph(fewer)


@pytest.mark.usefixtures("single_thread")
def test_trees_say_what_friends_are() -> None:
    nodes, edges = tables()
    model = fitted(from_tables(nodes, edges, edge_type="kind", directed=True), "boosted-trees")
    node = int(np.flatnonzero(model.predict() == "fraud")[0])
    told = {each.name: each for each in model.explain(f"n{node}").contributions}
    of_friends = told["share of friend neighbours known as fraud"]
    graph, y = model.graph_, model.y_
    friends = graph.edge_relations[:, graph.encoder.relations.names.index("friend")] > 0
    near = graph.edge_index[1, friends & (graph.edge_index[0] == node) & (graph.edge_index[1] != node)]
    known = y[near.numpy()]
    fraud = graph.class_names.index("fraud")
    assert of_friends.value == f"{(known == fraud).sum()} of {(known >= 0).sum()}"


@pytest.mark.usefixtures("single_thread")
@every_method
def test_edges_with_kinds_are_explained(method) -> None:
    nodes, edges = tables()
    model = fitted(from_tables(nodes, edges, edge_type="kind"), method, **({} if "tree" in method else {"epochs": 5}))
    explained = model.explain("n3")
    assert explained.alone is not None
    assert explained.alone.effect
    assert any(neighbour.effect for neighbour in explained.original)
    assert explained.contributions
    assert model.importance_.attrs["without_edges"] <= 1


@pytest.mark.usefixtures("single_thread")
def test_auto_uses_kinds_and_keeps_them(grown, tmp_path) -> None:
    (nodes, edges), (all_nodes, all_edges) = grown
    model = NodeClassifier(minutes=0.1, random_state=0, device="cpu", verbose=False)
    model.fit_graph(from_tables(nodes, edges, edge_type="kind"))
    assert model.leaderboard_["test"].iloc[0] > 0.9
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model", device="cpu")
    assert again.graph_.edge_relations.equal(model.graph_.edge_relations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphWarning)
        later = from_tables(all_nodes, all_edges, encoder=again.encoder_)
    found = again.predict_proba_graph(later)
    np.testing.assert_array_equal(found, model.predict_proba_graph(later))
    assert found.shape == (N + NEW, 2)
