"""Kinds of edges, from the table to the graph: which are told apart, and what each edge weighs in each."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_arrays, from_tables
from gcnsl.graph import from_data
from gcnsl.graph.edges import edge_parts
from gcnsl.graph.masks import GraphWarning
from gcnsl.runs.jobs import graph_digest

NODES = pd.DataFrame({"id": range(5), "age": [1.5, 2, 4, 8, 16], "label": list("aabbb")})
EDGES = pd.DataFrame(
    {
        "source": [0, 0, 1, 2, 2, 3],
        "target": [1, 1, 0, 1, 2, 4],
        "kind": ["friend", "foe", "friend", None, "friend", "foe"],
    }
)
NAMES = ["friend", "foe", "unknown"]


def dense(graph, kind: str = "edge") -> np.ndarray:
    """One matrix for each relation (R × n × n)."""
    index, weight, n = graph[f"{kind}_index"].numpy(), graph[f"{kind}_relations"], graph.num_nodes
    A = np.zeros((weight.shape[1], n, n))
    A[:, index[0], index[1]] = weight.T.numpy()
    return A


def expected(edges: pd.DataFrame, names: list[str], n: int, weight=None) -> np.ndarray:
    """The same of arcs, entry by entry of the table."""
    A = np.zeros((len(names), n, n))
    for row, (u, v, kind) in enumerate(edges[["source", "target", "kind"]].itertuples(index=False)):
        r = names.index(kind if isinstance(kind, str) else "unknown")
        A[r, u, v] = 1 if weight is None else A[r, u, v] + weight[row]
    return A


@pytest.mark.parametrize("weighted", [False, True])
def test_each_relation_has_the_weights_of_its_own_entries(weighted) -> None:
    edges = EDGES.assign(weight=[1, 2, 4, 8, 16, 32]) if weighted else EDGES
    weight = edges["weight"] if weighted else None
    graph = from_tables(NODES, edges, edge_type="kind", directed=True)
    assert graph.encoder.relations.names == NAMES
    arcs = expected(EDGES, NAMES, 5, weight)
    np.testing.assert_array_equal(dense(graph, "arc"), arcs)
    np.testing.assert_array_equal(dense(graph), np.maximum(arcs, arcs.transpose(0, 2, 1)))
    undirected = from_tables(NODES, edges, edge_type="kind")
    assert undirected.edge_relations.equal(graph.edge_relations)
    assert "arc_relations" not in undirected


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 2, st.sampled_from("abc")), min_size=1), st.booleans())
def test_any_edges_are_split_by_kind(rows, directed) -> None:
    edges = pd.DataFrame(rows, columns=["source", "target", "kind"])
    graph = from_tables(NODES, edges, edge_type="kind", directed=directed)
    names = edges["kind"].unique()
    assert ("edge_relations" in graph) == (len(names) > 1)
    if len(names) > 1:
        arcs = expected(edges, graph.encoder.relations.names, 5)
        np.testing.assert_array_equal(dense(graph), np.maximum(arcs, arcs.transpose(0, 2, 1)))
        assert sorted(graph.encoder.relations.names) == sorted(names)


def test_edges_of_one_kind_are_as_without_kinds() -> None:
    one = from_tables(NODES, EDGES.assign(kind="friend"), edge_type="kind")
    assert edge_parts(one).keys() == {"edge_index"}
    assert edge_parts(from_tables(NODES, EDGES)).keys() == {"edge_index"}, "nobody says that it is a kind"


def test_of_many_kinds_the_rare_ones_are_one() -> None:
    kinds = [f"k{number}" for number in range(12) for _ in range(12 - number)]
    edges = pd.DataFrame({"source": 0, "target": 1, "kind": kinds})
    relations = from_tables(NODES, edges, edge_type="kind").encoder.relations
    assert relations.names == [*(f"k{number}" for number in range(8)), "other"]
    assert relations.others == ["k8", "k9", "k10", "k11"]


def test_several_tables_are_kinds(tmp_path) -> None:
    for name, rows in (("calls", EDGES[:2]), ("mails", EDGES[2:])):
        rows[["source", "target"]].to_csv(tmp_path / f"{name}.csv", index=False)
    graph = from_tables(NODES, [tmp_path / "calls.csv", tmp_path / "mails.csv"])
    assert graph.encoder.relations.names == ["mails", "calls"]
    assert dense(graph).sum(axis=(1, 2)).tolist() == [7, 2]
    dropped = from_tables(NODES, [tmp_path / "calls.csv", tmp_path / "mails.csv"], drop=["table"])
    assert "edge_relations" not in dropped


def test_positive_and_negative_weights_are_two_kinds() -> None:
    trust = [3.0, -1, 2, -4, 0, -0.5]
    graph = from_tables(NODES, EDGES.drop(columns="kind").assign(weight=trust), directed=True)
    names = graph.encoder.relations.names
    assert sorted(names) == ["negative", "positive"]
    assert "edge_weight" not in graph, "which other methods could not use"
    for sign in (1, -1):
        W = np.zeros((5, 5))
        np.add.at(W, (EDGES["source"], EDGES["target"]), np.maximum(sign * np.array(trust), 0))
        np.testing.assert_allclose(dense(graph, "arc")[names.index("positive" if sign > 0 else "negative")], W)
    both = from_tables(NODES, EDGES.assign(trust=trust), weight="trust", edge_type="kind")
    assert {"positive friend", "negative foe", "negative unknown"} <= set(both.encoder.relations.names)


def test_kinds_follow_their_nodes_and_are_part_of_the_identity() -> None:
    graph = from_tables(NODES, EDGES, edge_type="kind", directed=True)
    order = torch.tensor([4, 2, 0, 1])
    part = graph.subgraph(order)
    for kind in ("edge", "arc"):
        np.testing.assert_array_equal(dense(part, kind), dense(graph, kind)[:, order][:, :, order])
    again = from_data(graph)
    assert all(again[name].equal(value) for name, value in edge_parts(graph).items())
    other = from_tables(NODES, EDGES.assign(kind=EDGES["kind"][::-1].tolist()), edge_type="kind", directed=True)
    other.columns = graph.columns
    assert graph_digest(graph) != graph_digest(other)


def test_edges_that_were_changed_have_no_kinds() -> None:
    graph = from_tables(NODES, EDGES, edge_type="kind")
    graph.edge_index = graph.edge_index[:, 2:]
    with pytest.warns(GraphWarning, match="edge_index was changed, but not edge_relations: the kinds"):
        assert "edge_relations" not in from_data(graph)
    assert "edge_relations" not in from_data(from_arrays([[1.0]], [[], []]))


@pytest.mark.parametrize(("rare", "told"), [(0, "are left out"), (9, "count as 'other'")])
def test_new_edges_are_read_as_in_training_and_new_kinds_are_told(rare, told) -> None:
    kinds = [*EDGES["kind"].fillna("friend"), *(f"k{number}" for number in range(rare))]
    ends = {"source": [*EDGES["source"], *[3] * rare], "target": [*EDGES["target"], *[4] * rare]}
    trained = from_tables(NODES, pd.DataFrame(ends | {"kind": kinds}), edge_type="kind")
    ends = {"source": [0, 1, 2, 3], "target": [1, 2, 3, 4]}
    grown = pd.DataFrame(ends | {"kind": ["foe", "loan", "loan", "friend"]})
    with pytest.warns(GraphWarning, match=f"2 edges are of kinds .* such as 'loan': they {told} where methods"):
        graph = from_tables(NODES, grown, encoder=trained.encoder)
    names = trained.encoder.relations.names
    A = dense(graph)
    assert A.shape[0] == len(names)
    for u, v, kind in zip(*ends.values(), grown["kind"], strict=True):
        name = kind if kind in names else "other"
        assert A[:, u, v].tolist() == [float(each == name) for each in names]


def test_weights_that_training_did_not_have_are_not_read() -> None:
    trained = from_tables(NODES, EDGES, edge_type="kind")
    graph = from_tables(NODES, EDGES.assign(weight=5.0), encoder=trained.encoder)
    assert graph.edge_relations.equal(trained.edge_relations)


def test_a_kind_needs_its_column() -> None:
    trained = from_tables(NODES, EDGES, edge_type="kind")
    with pytest.raises(InputError, match="no column 'kind', which the model was trained with: add it"):
        from_tables(NODES, EDGES.drop(columns="kind"), encoder=trained.encoder)


def test_a_level_that_no_edge_has_any_more_has_a_share_of_zero() -> None:
    trained = from_tables(NODES, EDGES)
    graph = from_tables(NODES, EDGES[EDGES["kind"] != "foe"], encoder=trained.encoder)
    columns = graph.columns.table.arrow.to_pandas()
    shares = columns[["edges: share kind=friend", "edges: share kind=foe"]]
    assert (shares["edges: share kind=foe"].dropna() == 0).all()
    assert shares["edges: share kind=foe"].isna().equals(shares["edges: share kind=friend"].isna())
    none = from_tables(NODES, EDGES.assign(kind=None), encoder=trained.encoder)
    assert none.x.shape == trained.x.shape, "nothing is known of them"
