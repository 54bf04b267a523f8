import pandas as pd
import pyarrow as pa
import pytest

from gcnsl import InputError, from_tables
from gcnsl.graph.tables import read_table, write_table

from .cases import GOOD_EDGES, GOOD_NODES


def test_bad_arguments_are_named(write, tmp_path) -> None:
    edges = write("e.csv", GOOD_EDGES)
    with pytest.raises(InputError, match=r"nodes\(.*\) does not exist"):
        from_tables(tmp_path / "absent.csv", edges)
    with pytest.raises(InputError, match=r"must end in one of \.csv, .tsv"):
        from_tables(write("n.xls", GOOD_NODES), edges)
    with pytest.raises(InputError, match="can't be read as a parquet table"):
        from_tables(write("n.parquet", GOOD_NODES), edges)
    with pytest.raises(InputError, match="nodes is a int"):
        from_tables([1, 2], edges)
    with pytest.raises(InputError, match=r"nodes, column 'id' can't be read .* values of one type"):
        from_tables(pd.DataFrame({"id": [1, "a"], "f": [1, 2]}), edges)


def test_columns_of_a_text_file_that_are_read_as_text(write) -> None:
    path = write("n.csv", "id,code,note\n007,01,NA\n7,2,\n")
    table = read_table(path, "nodes", text=lambda names: [names[0], "code", "note", "absent"])
    assert table.is_text
    assert table.arrow.to_pydict() == {"id": ["007", "7"], "code": ["01", "2"], "note": ["NA", None]}
    plain = read_table(write("m.csv", "id,code,note\n7,1,NA\n7,02,\n"), "nodes")
    assert plain.arrow.to_pydict() == {"id": [7, 7], "code": ["1", "02"], "note": [None, None]}
    assert not read_table(pa.table({"id": ["007"]}), "nodes").is_text


def test_an_uneven_row_is_named_by_the_users_count(tmp_path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("id,x\n1,2\n\n2,3\n3,4,5\n4,5\n")
    with pytest.raises(InputError, match=r"nodes.csv can't be read as a csv table: row 3 has 3 instead of 2 cells"):
        read_table(path, "nodes")


def test_line_breaks_in_quotes_are_part_of_a_cell_in_files_of_any_size(tmp_path) -> None:
    rows = 77_777  # far more than Arrow reads at once
    frame = pd.DataFrame(
        {"id": [f"n{i}" for i in range(rows)], "note": ["first\nsecond,x", "plain"] * 38_888 + ["a\r\nb"]}
    )
    frame.to_csv(tmp_path / "n.csv", index=False)
    found = read_table(tmp_path / "n.csv", "nodes", text=lambda names: ["id"]).arrow.to_pandas()
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["note"].tolist() == frame["note"].tolist()


@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_headers_may_have_line_breaks_and_quotes(write, start) -> None:
    path = write("n.csv", f'{start}id,"a\nb","c ""d"", e"\n1,2,3\n')
    table = read_table(path, "nodes", text=lambda names: ["id"])
    assert table.arrow.to_pydict() == {"id": ["1"], "a\nb": [2], 'c "d", e': [3]}


def test_an_id_may_be_called_NA(write) -> None:  # noqa: N802 - that is its name
    nodes = write("n.csv", "id,f,label\nNA,1,a\nnull,NA,b\nDE,3,\n")
    data = from_tables(nodes, write("e.csv", "source,target\nNA,null\nDE,NA\n"))
    assert data.node_ids.tolist() == ["NA", "null", "DE"]
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert data.x[:, 1].tolist() == [0, 1, 0], "NA is still a missing number"


@pytest.mark.parametrize(
    ("nodes", "edges", "first"),
    [
        ("id,f\n1,0\n2,0\n3,1\n", "1,2\n2,3\n", "1, 2"),
        ("id,f\na,0\nb,0\nc,1\n", "a,b\nb,c\n", "a, b"),
        ("id,f\n1,0\n2,0\n3,1\n", "1,2,0.5\n2,3,7\n", "1, 2, 0.5"),
    ],
)
def test_a_list_of_edges_without_a_header_keeps_its_first_edge(write, nodes, edges, first) -> None:
    path = write("e.csv", edges)
    data = from_tables(write("n.csv", nodes), path)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.notes[0] == f"{path} has no header: its first row, {first}, is taken for data"
    frame = pd.DataFrame([line.split(",") for line in edges.split()])
    assert from_tables(write("n.csv", nodes), frame).edge_index.tolist() == data.edge_index.tolist()
    with_header = write("e.csv", f"from,to{',w' * (first.count(',') - 1)}\n{edges}")
    again = from_tables(write("n.csv", nodes), with_header)
    assert again.edge_index.tolist() == data.edge_index.tolist()
    assert not any("no header" in note for note in again.notes)


def test_a_header_may_be_all_that_a_file_has(write) -> None:
    data = from_tables(write("n.csv", "id,f\na,0\nb,1\n"), write("e.csv", "source,target"))
    assert data.edge_index.shape == (2, 0)
    with pytest.raises(InputError, match=r"n\.csv has no rows"):
        from_tables(write("n.csv", "id,f"), write("e.csv", "source,target"))


TABLE = pa.table({"id": ["007", 'a "quoted", name', "é"], "probability": [0.5, 0.25, 1.0]})


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet", ".pq", ".CSV"])
def test_what_is_written_is_read_again(tmp_path, kind) -> None:
    path = tmp_path / "new folder" / f"table{kind}"
    for _ in range(2):
        write_table(TABLE, path)
        assert read_table(path, "table", text=lambda names: ["id"]).arrow.equals(TABLE)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
