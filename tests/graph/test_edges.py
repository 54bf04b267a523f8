import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_arrays
from gcnsl.graph import EdgeReport
from gcnsl.graph.edges import arcs_and_weights, simple_undirected

from .cases import EDGES, X, Y


def obvious(entries: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], EdgeReport]:
    """The rule of gcnsl.graph.edges, with Python sets."""
    directed = set(entries)
    both = sorted(directed | {(v, u) for u, v in directed})
    undirected = {(min(u, v), max(u, v)) for u, v in directed}
    loops = sum(u == v for u, v in undirected)
    one_way = sum(u != v and (v, u) not in directed for u, v in directed)
    return both, EdgeReport(len(entries), len(entries) - len(directed), loops, one_way, len(undirected))


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_agrees_with_sets(graph: tuple[int, list[tuple[int, int]]]) -> None:
    n, entries = graph
    source, target = np.array(entries, dtype=np.int32).reshape(-1, 2).T
    edge_index, report = simple_undirected(source, target, n)
    both, expected = obvious(entries)
    assert list(map(tuple, edge_index.T.tolist())) == both
    assert report == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge_index": [[0], [4]]}, r"edge_index\[1, 0\] is 4, but there are 4 nodes"),
        ({"edge_index": [[-1], [0]]}, r"edge_index\[0, 0\] is -1"),
        ({"edge_index": [[0, 1]] * 3}, "transpose it"),
        ({"edge_index": [[0.5], [1]]}, "integer node numbers"),
    ],
)
def test_bad_edges_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


entry = st.integers(0, 5)
weighted_lists = st.lists(st.tuples(entry, entry, st.integers(1, 64).map(lambda w: w / 8)), max_size=40)


def sum_of_weights(entries: list[tuple[int, int, float]]) -> np.ndarray:
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
    W = sum_of_weights(entries)
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


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 0, 1], r"edge_weight\[2\] is 0: weights must be finite in float32 and > 0; change it, drop the edge"),
        ([np.nan, 1, 1, 1], r"edge_weight\[0\] is nan"),
        ([1, 1, 1, 1e39], r"edge_weight\[3\] is 1e\+39"),
        ([1, 1], r"edge_weight has shape \(2,\) and dtype int64: give a number for each of 4 edges"),
        (np.ones((4, 2)), r"edge_weight has shape \(4, 2\)"),
    ],
)
def test_bad_weights_are_named(weight, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(X, EDGES, edge_weight=weight)
