import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_arrays
from gcnsl.graph import EdgeReport, simple_undirected

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


def test_more_repeats_than_a_byte_holds() -> None:
    source, target = np.zeros(1000, dtype=np.int32), np.ones(1000, dtype=np.int32)
    edge_index, report = simple_undirected(source, target, 2)
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    assert report == EdgeReport(rows=1000, repeated=999, loops=0, one_way=1, edges=1)


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
