import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from gcnsl.graph import ColumnEncoder, Columns
from gcnsl.graph import column_blocks as module
from gcnsl.graph.column_blocks import Block, blocks_of
from gcnsl.graph.table_reading import Table

from .cases import any_columns


@given(any_columns())
def test_a_block_has_the_values_of_its_columns_one_after_the_other(columns) -> None:
    table = columns.table.columns
    blocks = list(blocks_of(table))
    assert sorted(name for block in blocks for name in block.names) == sorted(table)
    assert len(blocks) == len({column.type for column in table.values()})
    for block in blocks:
        expected = [value for name in block.names for value in table[name].to_pylist()]
        assert repr(block.values.to_pylist()) == repr(expected)  # as text, where NaN is equal to itself


@given(any_columns())
def test_together_columns_are_read_as_each_alone(columns) -> None:
    for name in columns.table.columns:
        alone = Columns.read(Table(columns.table.arrow.select([name]), "nodes.csv"), [name])
        assert alone.kinds[name] == columns.kinds[name]
        if name in columns.used and columns.kinds[name] != "category":
            matrix = columns.matrix({n: kind for n, kind in columns.used.items() if kind != "category"})
            numeric = [n for n, kind in columns.used.items() if kind != "category"]
            assert np.array_equal(
                matrix[:, numeric.index(name)], alone.numbers(name, alone.kinds[name]), equal_nan=True
            )
        elif name in columns.used:
            texts = [
                [None if code < 0 else texts[code].as_py() for code in codes.tolist()]
                for codes, texts in (columns.levels(name), alone.levels(name))
            ]
            assert texts[0] == texts[1]


def test_a_wide_table_is_few_blocks(monkeypatch) -> None:
    made: list[Block] = []
    monkeypatch.setattr("gcnsl.graph.columns.blocks_of", lambda table: [made.append(b) or b for b in blocks_of(table)])
    values = {"t": ["a", "a", "b"], "n": [1.0, None, 3.0], "d": pd.to_datetime(["2020-01-01"] * 3), "i": [1, 2, None]}
    wide = {f"{name}{k}": pa.array(column) for name, column in values.items() for k in range(50)}
    columns = Columns.read(Table(pa.table(wide), "nodes.csv"), list(wide))
    ColumnEncoder.fit(columns).transform(columns)
    assert len(made) <= 12, "not one for each of the 200 columns"
    assert {len(block.names) for block in made} == {50}


def test_a_block_has_a_limit_unless_it_is_one_column(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 7)
    columns = {name: pa.chunked_array([[1, 2], [3]]) for name in "abcde"}
    assert [block.names for block in blocks_of(columns)] == [["a", "b"], ["c", "d"], ["e"]]
    monkeypatch.setattr(module, "MOST_VALUES", 2)
    assert [block.names for block in blocks_of(columns)] == [[name] for name in "abcde"]


@pytest.mark.parametrize(("bad", "place"), [([1, 0, 0, 0, 0, 0], ("a", 0)), ([0, 0, 0, 0, 1, 1], ("b", 1))])
def test_the_first_bad_value_has_a_column_and_a_row(bad, place) -> None:
    block = Block(["a", "b"], pa.chunked_array([range(6)]))
    assert block.first(np.array(bad, dtype=bool)) == place
