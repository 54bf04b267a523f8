import pyarrow as pa
import pytest

from gcnsl import InputError
from gcnsl.graph.tables import check_table, read_table, write_table

TABLE = pa.table({"id": ["007", 'a "quoted", name', "é"], "probability": [0.5, 0.25, 1.0]})


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet", ".pq", ".CSV"])
def test_what_is_written_is_read_again(tmp_path, kind) -> None:
    path = tmp_path / "new folder" / f"table{kind}"
    for _ in range(2):
        write_table(TABLE, path)
        assert read_table(path, "table", text=[("id", 0)]).arrow.equals(TABLE)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path) -> None:
    with pytest.raises(InputError, match=r"output\('out.xlsx'\) must end in one of .csv, .tsv, "):
        check_table("out.xlsx")
    with pytest.raises(InputError, match="must end in one of"):
        write_table(TABLE, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_no_cell_for_a_spreadsheet_is_a_formula(tmp_path, ending) -> None:
    table = pa.table(
        {
            "=id": ["=HYPERLINK()", "+1", "-1", "@a", "a=b", "b"],
            "number": [-1.5, 2, 3, 4, 5, 6],
            "note": ["=1", None, None, None, None, "n"],
        }
    )
    write_table(table, tmp_path / f"p{ending}", for_spreadsheet=True)
    found = read_table(tmp_path / f"p{ending}", "table", text=[("'=id", None)]).arrow.to_pydict()
    assert found["'=id"] == ["'=HYPERLINK()", "'+1", "'-1", "'@a", "a=b", "b"]
    assert found["note"] == ["'=1", *[None] * 4, "n"]
    assert found["number"] == [-1.5, 2, 3, 4, 5, 6], "numbers stay numbers"
