import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_arrays, from_tables
from gcnsl.graph.sources import check_ids


@pytest.mark.parametrize("shuffled", [np.arange(50), np.arange(50) * 10**12 - 7, -np.arange(50)])
def test_integer_ids_dense_sparse_and_negative(shuffled) -> None:
    ids = np.random.default_rng(0).permutation(shuffled)
    ends = np.random.default_rng(1).integers(0, 50, (2, 200))
    nodes = pd.DataFrame({"id": ids, "f": np.arange(50.0)})
    data = from_tables(nodes, pd.DataFrame({"source": ids[ends[0]], "target": ids[ends[1]]}))
    expected = from_arrays(np.arange(50.0)[:, None], ends)
    assert data.edge_index.equal(expected.edge_index)
    assert data.x.equal(expected.x)


def test_ids_of_different_types_meet_as_text() -> None:
    nodes = pd.DataFrame({"id": ["1", "2", "x"], "f": [1, 2, 3]})
    assert from_tables(nodes, pd.DataFrame({"source": [1], "target": [2]})).edge_index.tolist() == [[0, 1], [1, 0]]
    floats = pd.DataFrame({"source": [1.0], "target": [2.0]})
    assert from_tables(nodes, floats).edge_index.tolist() == [[0, 1], [1, 0]]


small_ids = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@given(small_ids, small_ids, small_ids)
def test_small_integer_tables_load_exactly_when_they_should(ids, source, target) -> None:
    size = min(len(source), len(target))
    nodes = pd.DataFrame({"id": ids, "f": np.arange(len(ids))})
    edges = pd.DataFrame({"source": source[:size], "target": target[:size]})
    good = len(set(ids)) == len(ids) and set(source[:size]) | set(target[:size]) <= set(ids)
    if good:
        data = from_tables(nodes, edges)
        number = {node: i for i, node in enumerate(ids)}
        expected = {(number[u], number[v]) for u, v in zip(source, target, strict=False)}
        assert set(map(tuple, data.edge_index.T.tolist())) == expected | {(v, u) for u, v in expected}
    else:
        with pytest.raises(InputError):
            from_tables(nodes, edges)


def test_strings_in_several_chunks() -> None:
    nodes = pa.table({"id": pa.chunked_array([["a"], ["b", "c"]]), "f": [1.0, 2.0, 3.0]})
    edges = pa.table({"source": pa.chunked_array([["a", "b"], ["c"]]), "target": ["c", "a", "c"]})
    assert from_tables(nodes, edges).edge_index.tolist() == [[0, 0, 1, 2, 2], [1, 2, 0, 0, 2]]
    with pytest.raises(InputError, match="edges, row 2, column 'target' is 'd', which is not an id in nodes"):
        from_tables(nodes, pa.table({"source": ["a", "b"], "target": ["c", "d"]}))
    with pytest.raises(InputError, match="nodes, row 2, column 'id' has a NUL character: remove it"):
        from_tables(pa.table({"id": ["a", "a\0"], "f": [1.0, 2.0]}), edges)
    with pytest.raises(InputError, match="nodes, row 3: an earlier row has the id 'a' too"):
        from_tables(pa.table({"id": ["a", "b", "a"], "f": [1.0, 2.0, 3.0]}), edges)


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        ([3, 1, 2], [3, 1, 2]),
        (range(3), [0, 1, 2]),
        (np.array([3, 1, 2], dtype=np.uint8), [3, 1, 2]),
        (np.array([1, 2, 2**63], dtype=np.uint64), ["1", "2", "9223372036854775808"]),
        ([1, 2, 10**30], ["1", "2", str(10**30)]),
        (np.array([0, 1, 2], dtype="datetime64[D]"), ["1970-01-01", "1970-01-02", "1970-01-03"]),
        ([b"a", b"\xff", "c"], ["a", "\\xff", "c"]),
        (["a", "\ud800", "a\0"], ["a", "\\ud800", "a\\x00"]),
        ([1, "b", (2, 3)], ["1", "b", "(2, 3)"]),
        ([0.5, 1.5, 2.5], ["0.5", "1.5", "2.5"]),
        ([True, False, "x"], ["True", "False", "x"]),
    ],
)
def test_ids_are_integers_or_text(ids, kept) -> None:
    given = np.empty(3, dtype=object)
    given[:] = list(ids)
    assert check_ids(given, 3).tolist() == kept
    if not any(isinstance(name, tuple) for name in ids):
        assert check_ids(ids if isinstance(ids, np.ndarray) else given, 3).dtype.kind in "iU"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], r"has shape \(2,\): give 3 entries"),
        (7, r"has shape \(\)"),
        ([[1], [2], [3]], r"has shape \(3, 1\)"),
        ([1, None, 2], r"node_ids\[1\] is missing: give every node an id"),
        ([1.0, 2.0, float("nan")], r"node_ids\[2\] is missing"),
        ([1, 2, 1], "has 1 twice: give every node its own id"),
        (["a", "b", "a"], "has 'a' twice"),
        ([1, "1", 2], "has '1' twice"),
    ],
)
def test_bad_ids_are_named(ids, message) -> None:
    with pytest.raises(InputError, match=message):
        check_ids(ids, 3)
