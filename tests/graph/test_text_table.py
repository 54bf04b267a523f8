"""The compiled table of texts, beside a dictionary."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_tables
from gcnsl.graph import ids

text_table = pytest.importorskip("gcnsl.graph.text_table", reason="numba is not installed")
words = st.text(max_size=12)


def large(texts):
    return pa.array(texts, type=pa.large_string())


@given(st.lists(words, unique=True, min_size=1), st.lists(words), st.integers(0, 3))
def test_finds_what_a_dictionary_finds(rows, wanted, skipped):
    wanted = wanted + rows[::2]
    table = text_table.TextTable(large(["left out", *rows])[1:])
    assert table.unique
    chunks = pa.chunked_array([large(wanted[:skipped]), large(["x", *wanted[skipped:]])[1:]], type=pa.large_string())
    found = np.full(len(wanted), 7, dtype=np.int32)
    table.find(chunks, found)
    numbers = {word: row for row, word in enumerate(rows)}
    assert found.tolist() == [numbers.get(word, -1) for word in wanted]


@given(st.lists(words, min_size=1))
def test_knows_whether_a_text_is_repeated(rows):
    assert text_table.TextTable(large(rows)).unique == (len(set(rows)) == len(rows))


def test_many_texts():
    rows = [f"node-{k}" for k in range(100_000)]
    table = text_table.TextTable(large(rows))
    order = np.random.default_rng(0).permutation(len(rows))
    found = np.empty(len(rows), dtype=np.int32)
    table.find(pa.chunked_array([large([rows[k] for k in order])]), found)
    np.testing.assert_array_equal(found, order)


def test_large_tables_take_the_compiled_way(monkeypatch):
    nodes = pa.table({"id": ["a", "b", "c"], "f": [1.0, 2.0, 3.0]})
    edges = pa.table({"source": ["a", "b"], "target": ["c", "a"]})
    plain = from_tables(nodes, edges)
    monkeypatch.setattr(ids, "COMPILED_FROM", 0)
    assert from_tables(nodes, edges).edge_index.equal(plain.edge_index)
    with pytest.raises(InputError, match="edges, row 2, column 'target' is 'd'"):
        from_tables(nodes, pa.table({"source": ["a", "b"], "target": ["c", "d"]}))
    with pytest.raises(InputError, match="nodes, row 3: id 'a' is given to an earlier row too"):
        from_tables(pa.table({"id": ["a", "b", "a"], "f": [1.0, 2.0, 3.0]}), edges)
