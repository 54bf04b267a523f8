import pandas as pd
import pyarrow as pa
import pytest

from gcnsl import InputError, from_tables
from gcnsl.graph import GraphWarning

from .cases import GOOD_NODES

EDGES = "source,target,weight,strength,kind,since\n1,2,2,0.5,a,2001\n2,1,3,4,b,2002\n"


@pytest.fixture
def graph(write):
    """Read a graph of two nodes with this table of edges."""
    nodes = write("n.csv", GOOD_NODES)
    return lambda edges, **options: from_tables(nodes, write("e.csv", edges), **options)


@pytest.mark.parametrize(
    ("named", "weights"), [({}, [3, 3]), ({"weight": "strength"}, [4, 4]), ({"weight": False}, None)]
)
def test_the_column_is_the_named_one_or_weight_or_none(graph, named, weights) -> None:
    data = graph(EDGES, **named)
    assert (None if data.edge_weight is None else data.edge_weight.tolist()) == weights
    assert "arc_index" not in data


def test_directions_and_their_weights(graph) -> None:
    data = graph("source,target,weight\n2,1,2\n2,1,3\n", directed=True)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.arc_index.tolist() == [[1], [0]]
    assert data.arc_weight.tolist() == [5]
    assert "edge_weight" not in graph("source,target\n2,1\n", directed=True)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal128(21, 2)])
def test_numbers_of_any_type(kind) -> None:
    nodes = pd.DataFrame({"id": [1, 2], "f": [0, 1]})
    edges = pa.table({"source": [1], "target": [2], "weight": pa.array([3]).cast(kind)})
    assert from_tables(nodes, edges).edge_weight.tolist() == [3, 3]


def test_columns_that_are_not_used_are_noted(graph) -> None:
    (note,) = graph(EDGES).notes
    assert note.endswith("e.csv that are not used: strength, kind, since")
    assert graph("source,target,weight\n1,2,1\n").notes == []
    many = graph("source,target," + ",".join("abcdefgh") + "\n1,2" + 8 * ",0" + "\n")
    assert many.notes[0].endswith("not used: a, b, c, d, e and 3 more")


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ("7 much", "row 2, column 'weight' is 'much', which is not a number"),
        (" ", "column 'weight' is empty"),
        ("true false", "row 1, column 'weight' is 'True'"),
        (" 2020-02-03", "row 2, column 'weight' is '2020-02-03"),
    ],
)
def test_a_column_weight_without_numbers_is_left_out_with_a_warning(graph, cells, found) -> None:
    edges = "source,target,weight\n" + "".join(f"1,2,{cell}\n" for cell in cells.split(" "))
    with pytest.warns(GraphWarning, match=rf"the edges have no weights, because .*e\.csv, {found}"):
        data = graph(edges)
    assert "edge_weight" not in data
    assert "edge_weight" not in graph(edges, weight=False)


def test_digits_that_are_stored_as_text_are_not_weights() -> None:
    nodes = pd.DataFrame({"id": [1, 2], "f": [0, 1]})
    edges = pd.DataFrame({"source": [1], "target": [2], "weight": ["3"]})
    with pytest.raises(InputError, match="edges, row 1, column 'weight' is '3', which is not a number: weights must"):
        from_tables(nodes, edges, weight="weight")


def test_a_column_weight_may_hold_the_ends(graph) -> None:
    assert "edge_weight" not in graph("weight,target\n1,2\n", source="weight")


@pytest.mark.parametrize(
    ("edges", "weight", "message"),
    [
        ("1,2,1\n2,1,0", None, r"e\.csv, row 2, column 'weight' is 0: weights must be finite .* > 0; change it, drop"),
        ("1,2,-0.5\n2,1,1", None, r"e\.csv, row 1, column 'weight' is -0\.5"),
        ("1,2,inf", None, r"e\.csv, row 1, column 'weight' is inf"),
        ("1,2,1\n2,1,", "weight", r"e\.csv, row 2, column 'weight' is empty: weights must be"),
        ("1,2,1\n1,2,much", "weight", r"e\.csv, row 2, column 'weight' is 'much', which is not a number: weights must"),
        ("1,2,1", "strength", r"weight\('strength'\) is not a column of .*e\.csv, which has source, target, weight"),
        ("1,2,1", "target", r"weight\('target'\) is the column of .*e\.csv with an end of the edges: name another"),
    ],
)
def test_bad_weights_are_named(graph, edges, weight, message) -> None:
    with pytest.raises(InputError, match=message):
        graph(f"source,target,weight\n{edges}\n", weight=weight)


def test_a_table_without_edges_may_have_a_column_of_weights(tmp_path) -> None:
    (tmp_path / "e.csv").write_text("source,target,amount\n")
    data = from_tables(pd.DataFrame({"id": [1, 2], "f": [0, 1]}), tmp_path / "e.csv", weight="amount")
    assert data.edge_index.shape == (2, 0)
    assert data.edge_weight.shape == (0,)
