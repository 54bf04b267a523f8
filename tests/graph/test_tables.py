import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcnsl import InputError, from_tables
from gcnsl.graph.tables import Written, read_table, write_table

from .cases import GOOD_EDGES


def test_bad_arguments_are_named(write) -> None:
    edges = write("e.csv", GOOD_EDGES)
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


def zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("table.txt", content)
    return file.getvalue()


PACKED = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zip": zipped}
words = st.text("abcdefgäöü", min_size=1, max_size=6)


@given(
    names=st.lists(words, min_size=2, max_size=4, unique=True),
    rows=st.lists(st.tuples(words, st.integers(-999, 999), st.floats(-1e6, 1e6), words), min_size=3, max_size=30),
    separator=st.sampled_from([",", "\t", ";", "|", " "]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
    packed=st.sampled_from(list(PACKED)),
    ending=st.sampled_from([".csv", ".txt", ".tsv", ""]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_read_is_what_pandas_reads_with_the_right_options(  # noqa: PLR0917 - one argument for each respect
    tmp_path, names, rows, separator, encoding, packed, ending
) -> None:
    frame = pd.DataFrame([row[: len(names)] for row in rows], columns=names)
    content = frame.to_csv(None, index=False, sep=separator).encode(encoding)
    path = tmp_path / f"table{ending}{packed}"
    path.write_bytes(PACKED[packed](content))
    expected = pd.read_csv(io.BytesIO(content), sep=separator, encoding=encoding, keep_default_na=False)
    found = read_table(path, "nodes").arrow.to_pandas()
    assert found.columns.tolist() == expected.columns.tolist()
    for name in names:
        assert np.asarray(found[name]).tolist() == expected[name].tolist()


def test_what_is_guessed_is_said_and_can_be_told(tmp_path) -> None:
    path = tmp_path / "n.txt"
    path.write_bytes("# from the bank\nid;größe\na;1,5\nb;2\n".encode("cp1252"))
    table = read_table(path, "nodes")
    assert table.arrow.to_pydict() == {"id": ["a", "b"], "größe": ["1,5", "2"]}
    assert [note.removeprefix(f"{path}") for note in table.notes] == [
        " is not UTF-8: it is read as cp1252 (--encoding names another)",
        ": the first 1 lines are comments",
        ": cells are taken to be separated by semicolons (--sep names another separator)",
    ]
    told = read_table(path, "nodes", written=Written(";", "latin-1", "nodes"))
    assert told.arrow["column 1"].to_pylist() == ["id", "a", "b"]
    assert [note.split(": ")[1] for note in told.notes] == ["the first 1 lines are comments"]
    for written in (Written(encoding="ascii"), Written(encoding="nope")):
        with pytest.raises(InputError, match="encoding"):
            read_table(path, "nodes", written=written)


@pytest.mark.parametrize(
    ("rows", "has_header"),
    [
        ("1,0.5,red\n2,0.7,blue\n3,0.1,red\n", False),
        ("id,1999,2000\na,1,2\nb,3,4\n", True),
        ("0,1,2\n5,1,2\n6,3,4\n", True),
        ("id,f\n1,2\n3,4\n", True),
    ],
)
def test_a_first_row_that_looks_like_data_is_data(write, rows, has_header) -> None:
    table = read_table(write("n.csv", rows), "nodes")
    assert table.arrow.num_rows == rows.count("\n") - has_header
    assert bool(table.notes) == (not has_header)


def test_feather_and_json_lines(tmp_path) -> None:
    frame = pd.DataFrame({"id": ["007", "7"], "f": [0.5, 1.0], "tags": [["a", "b"], ["b"]]})
    expected = {"id": ["007", "7"], "f": [0.5, 1.0], "tags": ['["a", "b"]', '["b"]']}
    frame.to_feather(tmp_path / "n.feather")
    rows = frame.to_dict("records")
    (tmp_path / "n.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    (tmp_path / "n.json").write_text(json.dumps(rows))
    for name in ("n.feather", "n.jsonl.gz", "n.json"):
        assert read_table(tmp_path / name, "nodes").arrow.to_pydict() == expected
    with pytest.raises(InputError, match=r"n\.jsonl.* does not exist.*did you mean n\.json"):
        read_table(tmp_path / "n.jsonl", "nodes")


def test_tables_are_joined_and_kinds_of_edges_kept_apart(write) -> None:
    people = write("people.csv", "id,age\n1,30\n2,41\n3,\n")
    jobs = write("jobs.csv", "person_id,age,pay,label\n3,25,1.5,a\n4,60,2.5,b\n1,9,7,b\n")
    friends, calls = write("friends.csv", "u,v\n1,2\n"), write("calls.csv", "from,to,minutes\n1,3,5\n4,1,7\n")
    data = from_tables([people, jobs], [friends, calls], directed=True)
    assert data.node_ids.tolist() == ["1", "2", "3", "4"]
    read = data.columns.table.arrow.to_pydict()
    assert (read["age"], read["pay"]) == ([30, 41, 25, 60], [7, None, 1.5, 2.5])
    assert data.y.tolist() == [1, -1, 0, 1]
    assert data.arc_index.T.tolist() == [[0, 1], [0, 2], [3, 0]]
    assert read["out-edges: share table=calls"] == [0.5, None, None, 1]
    assert read["in-edges: sum minutes"] == [7, 0, 5, 0]
    assert any("has rows of 2 of the 3 nodes of" in note and "of 1 others" in note for note in data.notes)
    again = from_tables([people, jobs], [friends, calls], directed=True, encoder=data.encoder)
    assert again.x.equal(data.x)
    fewer = from_tables([people, jobs], [friends, calls], drop=["age", "minutes"], categorical=["pay"])
    assert {name for name in fewer.columns.kinds if "edges" not in name} == {"pay"}
    assert not any("minutes" in name for name in fewer.feature_names)


def test_rows_are_ids_where_no_column_is(write) -> None:
    nodes = write("n.csv", "label,f\n" + "".join(f"{'ab'[i % 2]},{i % 3}\n" for i in range(6)))
    for first, edges in ((0, "0.0e+00 5.0e+00\n1.0e+00 2.0e+00\n"), (1, "1 6\n2 3\n")):
        data = from_tables(nodes, write("e.txt", edges))
        assert data.edge_index.T.tolist() == [[0, 5], [1, 2], [2, 1], [5, 0]]
        assert data.node_ids.tolist() == list(range(first, first + 6))
        assert data.feature_names == ["f"]
        assert f"its rows are numbered from {first}" in data.notes[0]


def test_repeated_rows_are_left_out(write) -> None:
    data = from_tables(write("n.csv", "id,f\n1,0\n2,1\n1,0\n"), write("e.csv", GOOD_EDGES))
    assert data.num_nodes == 2
    assert "1 rows of" in data.notes[0]


@pytest.mark.parametrize("form", ["npz", "npy", "long", "matrix"])
def test_wide_features(tmp_path, write, form) -> None:
    matrix = sp.random_array((30, 50), density=0.3, rng=0, format="csr", dtype=np.float32)
    ids = [f"n{i}" for i in range(30)]
    nodes = write("n.csv", "id,age,label\n" + "".join(f"{name},{i},{'ab'[i % 2]}\n" for i, name in enumerate(ids)))
    edges, path = write("e.csv", "source,target\nn1,n2\n"), tmp_path / f"words.{form}"
    if form == "npz":
        sp.save_npz(path, matrix)
    elif form == "npy":
        np.save(path, matrix.toarray())
    elif form == "long":
        path, cells = tmp_path / "words.csv", matrix.tocoo()
        rows = {"node": np.array(ids)[cells.row], "feature": [f"w{k:02}" for k in cells.col], "value": cells.data}
        pd.DataFrame(rows).to_csv(path, index=False)
    data = from_tables(nodes, edges, wide=matrix if form == "matrix" else path)
    assert data.num_features == 51
    np.testing.assert_allclose(data.x[:, 1:], matrix.toarray(), rtol=1e-6)
    assert data.feature_names[1] == {"long": "words: w00", "matrix": "feature: 0"}.get(form, "words: 0")
    assert abs(data.x[:, 0].mean()) < 1e-6, "quantities beside them are standardised"
    few = sp.csr_array(matrix.multiply(matrix > 0.9))
    assert from_tables(nodes, edges, drop=["age"], wide=few).x.layout == torch.sparse_csr
    with pytest.raises(InputError, match="trained with the further features"):
        from_tables(nodes, edges, encoder=data.encoder)
    assert from_tables(nodes, edges, encoder=data.encoder, wide=matrix if form == "matrix" else path).x.equal(data.x)
