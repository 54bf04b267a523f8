import pandas as pd
import pyarrow as pa
import pytest

from gcnsl import InputError, from_tables
from gcnsl.graph.table_reading import Table, read_table

from .cases import GOOD_EDGES, GOOD_NODES


def test_bad_arguments_are_named(write, tmp_path) -> None:
    edges = write("e.csv", GOOD_EDGES)
    with pytest.raises(InputError, match=r"nodes\(.*\) does not exist"):
        from_tables(tmp_path / "absent.csv", edges)
    with pytest.raises(InputError, match=r"must end in one of \.csv, .tsv"):
        from_tables(write("n.xls", GOOD_NODES), edges)
    with pytest.raises(InputError, match="can't be read as a parquet table"):
        from_tables(write("n.parquet", GOOD_NODES), edges)
    with pytest.raises(InputError, match="nodes is a list"):
        from_tables([1, 2], edges)
    with pytest.raises(InputError, match=r"nodes, column 'id' can't be read .* values of one type"):
        from_tables(pd.DataFrame({"id": [1, "a"], "f": [1, 2]}), edges)


def test_a_missing_column_is_reported_with_a_few_of_the_others() -> None:
    table = read_table(pa.table({f"c{k}": [1] for k in range(40)}), "nodes")
    with pytest.raises(InputError, match=r"label\('kind'\) is not a column of nodes, which has c0, .* and 30 more$"):
        table.find_optional("kind", "label")


def test_the_columns_of_a_wide_table_are_listed_once(monkeypatch) -> None:
    """Listing them once per column takes minutes."""
    listed = []

    class Counted:
        """An Arrow table that counts how often its columns are listed."""

        def __init__(self, arrow) -> None:
            self.arrow = arrow

        def __getattr__(self, name):
            if name in ("column_names", "columns", "schema"):
                listed.append(name)
            return getattr(self.arrow, name)

        def __getitem__(self, name):
            listed.append(name)
            return self.arrow[name]

    class CountedTable(Table):
        def __init__(self, arrow, name, is_text) -> None:
            super().__init__(Counted(arrow), name, is_text)

    monkeypatch.setattr("gcnsl.graph.table_reading.Table", CountedTable)
    nodes = pa.table({"id": range(5), **{f"f{k}": [1.0] * 5 for k in range(2000)}})
    data = from_tables(nodes, pa.table({"source": [0], "target": [1]}), features=[f"f{k}" for k in range(2000)])
    assert data.x.shape == (5, 2000)
    assert len(listed) < 20


def test_columns_of_a_text_file_that_are_read_as_text(write) -> None:
    path = write("n.csv", "id,code,note\n007,01,NA\n7,2,\n")
    table = read_table(path, "nodes", text=[("key", 0), ("code", None), ("absent", None)], verbatim="note")
    assert table.is_text
    assert table.arrow.to_pydict() == {"id": ["007", "7"], "code": ["01", "2"], "note": ["NA", None]}
    assert read_table(path, "nodes").arrow.to_pydict() == {"id": [7, 7], "code": [1, 2], "note": [None, None]}
    assert not read_table(pa.table({"id": ["007"]}), "nodes").is_text


def test_an_uneven_row_is_named_by_the_users_count(tmp_path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("id,x\n1,2\n\n2,3\n3,4,5\n4,5\n")
    with pytest.raises(InputError, match=r"nodes.csv can't be read as a csv table: row 3 has 3 instead of 2 cells"):
        read_table(path, "nodes")
