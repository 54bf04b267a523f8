import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_arrays
from gcnsl.graph.edges import arcs_and_weights, edge_parts, simple_undirected

from .cases import EDGES, X

entry = st.integers(0, 5)
weighted_lists = st.lists(st.tuples(entry, entry, st.integers(1, 64).map(lambda w: w / 8)), max_size=40)


def obvious(entries: list[tuple[int, int, float]]) -> np.ndarray:
    """The matrix W of the module's docstring, summed entry by entry."""
    W = np.zeros((6, 6))
    for u, v, w in entries:
        W[u, v] += w
    return W


def dense(index, values) -> np.ndarray:
    matrix = np.zeros((6, 6))
    matrix[tuple(index)] = values
    return matrix


@given(weighted_lists)
def test_agrees_with_a_dense_matrix(entries) -> None:
    W = obvious(entries)
    source, target = np.array([entry[:2] for entry in entries], dtype=np.int32).reshape(-1, 2).T
    weight = [w for _, _, w in entries]
    edge_index, _ = simple_undirected(source, target, 6)
    parts = arcs_and_weights(source, target, 6, directed=True, weight=weight)
    assert [part.dtype for part in parts.values()] == [torch.float32, torch.int64, torch.float32]
    np.testing.assert_array_equal(parts["arc_index"].T, np.argwhere(W))  # sorted, too
    np.testing.assert_array_equal(dense(parts["arc_index"], parts["arc_weight"]), W)
    np.testing.assert_array_equal(dense(edge_index, parts["edge_weight"]), np.maximum(W, W.T))
    plain = arcs_and_weights(source, target, 6, directed=True)
    assert list(plain) == ["arc_index"]
    assert plain["arc_index"].equal(parts["arc_index"])


@given(weighted_lists)
def test_a_list_with_both_directions_weighs_what_one_with_a_single_direction_does(entries) -> None:
    once = [(min(u, v), max(u, v), w) for u, v, w in entries]
    both = [*once, *((v, u, w) for u, v, w in once if u != v)]
    x = np.ones((6, 1))
    graphs = []
    for some in (once, both):
        ends = np.array([entry[:2] for entry in some], dtype=int).reshape(-1, 2).T
        graphs.append(from_arrays(x, ends, edge_weight=[w for *_, w in some]))
    assert graphs[0].edge_index.equal(graphs[1].edge_index)
    assert graphs[0].edge_weight.equal(graphs[1].edge_weight)


def test_a_graph_keeps_what_it_was_given() -> None:
    weight = np.array([[1.0], [2], [3], [4]])
    assert list(edge_parts(from_arrays(X, EDGES))) == ["edge_index"]
    assert list(edge_parts(from_arrays(X, EDGES, directed=True))) == ["edge_index", "arc_index"]
    assert list(edge_parts(from_arrays(X, EDGES, edge_weight=weight))) == ["edge_index", "edge_weight"]
    parts = edge_parts(from_arrays(X, EDGES, directed=True, edge_weight=weight))
    assert {name: part.tolist() for name, part in parts.items()} == {
        "edge_index": [[0, 1, 1, 2, 3], [1, 0, 2, 1, 3]],
        "edge_weight": [2, 2, 3, 3, 4],
        "arc_index": [[0, 1, 1, 3], [1, 0, 2, 3]],
        "arc_weight": [1, 2, 3, 4],
    }


def test_a_graph_without_edges() -> None:
    nothing = np.empty((2, 0), dtype=int)
    data = from_arrays(X, nothing, directed=True, edge_weight=[])
    assert data.arc_index.shape == (2, 0)
    assert data.edge_weight.shape == data.arc_weight.shape == (0,)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 0, 1], r"edge_weight\[2\] is 0: weights must be finite in float32 and > 0; change it, drop the edge"),
        ([1, -2.5, 1, 1], r"edge_weight\[1\] is -2\.5"),
        ([np.nan, 1, 1, 1], r"edge_weight\[0\] is nan"),
        ([1, 1, 1, 1e39], r"edge_weight\[3\] is 1e\+39"),
        ([1, 1, 1, 1e-60], r"edge_weight\[3\] is 1e-60"),
        ([1, 1], r"edge_weight has shape \(2,\) and dtype int64: give a number for each of 4 edges"),
        (list("abcd"), r"edge_weight has shape \(4,\) and dtype <U1"),
        (np.ones((4, 2)), r"edge_weight has shape \(4, 2\)"),
    ],
)
def test_bad_weights_are_named(weight, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(X, EDGES, edge_weight=weight)


def test_a_sum_that_is_too_large_is_named() -> None:
    with pytest.raises(InputError, match="weights of repeated edges add up to more than float32 can hold"):
        from_arrays(X, [[0, 0], [1, 1]], edge_weight=[3e38, 3e38])
