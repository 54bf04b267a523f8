"""Compiled code against sparse matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.graph import bucketing, simple_edges


def both_ways(source, target, num_nodes):
    ends = np.asarray(source, dtype=np.int32), np.asarray(target, dtype=np.int32)
    return bucketing.merge_edges(*ends, num_nodes), simple_edges.merge_by_matrices(*ends, num_nodes)


@given(st.data())
def test_is_the_sum_of_the_matrix_and_its_transpose(data):
    num_nodes = data.draw(st.integers(1, 40))
    node = st.integers(0, num_nodes - 1)
    entries = data.draw(st.lists(st.tuples(node, node), max_size=60))
    source, target = ([entry[end] for entry in entries] for end in (0, 1))
    (compiled, given_once), (expected, count) = both_ways(source, target, num_nodes)
    np.testing.assert_array_equal(compiled, expected)
    assert given_once == count


@pytest.mark.parametrize(("num_nodes", "entries"), [(100_000, 300_000), (300, 200_000), (2**31 - 2, 50)])
def test_many_buckets_and_long_numbers(num_nodes, entries, monkeypatch):
    monkeypatch.setattr(bucketing, "_BUCKET_ENTRIES", 1000)
    generator = np.random.default_rng(0)
    ends = generator.integers(0, num_nodes, (2, entries)).astype(np.int32)
    ends[1, : entries // 10] = ends[0, : entries // 10]
    ends[0, : entries // 3] = num_nodes - 1
    index, given_once = bucketing.merge_edges(*ends, num_nodes)
    packed = ends.astype(np.int64)
    expected = {tuple(pair) for pair in np.concatenate([packed, packed[::-1]], axis=1).T.tolist()}
    assert sorted(expected) == [tuple(pair) for pair in index.T.tolist()]
    assert given_once == len({tuple(pair) for pair in packed.T.tolist()})


def test_large_graphs_take_the_compiled_way(monkeypatch):
    generator = np.random.default_rng(1)
    ends = generator.integers(0, 50, (2, 400)).astype(np.int32)
    plain = simple_edges.simple_undirected(*ends, 50)
    monkeypatch.setattr(simple_edges, "COMPILED_FROM", 1)
    compiled = simple_edges.simple_undirected(*ends, 50)
    np.testing.assert_array_equal(compiled[0], plain[0])
    assert compiled[1] == plain[1]
