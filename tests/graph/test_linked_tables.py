import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, from_tables
from gcnsl.graph import GraphWarning

from .cases import GOOD_NODES

small_ids = st.lists(st.sampled_from([0, 1, 2, 5, -7, 10**12]), min_size=1, max_size=6)


@given(small_ids, small_ids, small_ids)
def test_small_integer_tables_load_exactly_when_they_should(ids, source, target) -> None:
    size = min(len(source), len(target))
    nodes = pd.DataFrame({"id": ids, "f": np.arange(len(ids))})
    edges = pd.DataFrame({"source": source[:size], "target": target[:size]})
    number = {node: i for i, node in enumerate(ids)}
    known = [(u, v) for u, v in zip(source, target, strict=False) if {u, v} <= set(ids)]
    if len(set(ids)) == len(ids) and 2 * len(known) >= size:
        data = from_tables(nodes, edges)
        assert [note.split(" ")[0] for note in data.notes] == [str(size - len(known))] * (len(known) < size)
        expected = {(number[u], number[v]) for u, v in known}
        assert set(map(tuple, data.edge_index.T.tolist())) == expected | {(v, u) for u, v in expected}
    else:
        with pytest.raises(InputError):
            from_tables(nodes, edges)


SIGNED = ("sum weight > 0", "share weight > 0")
TABLE = "source,target,weight,strength,kind,since\n1,2,2,0.5,a,2001\n2,1,3,4,b,2002\n"


@pytest.fixture
def graph(write):
    """Read a graph of two nodes with this table of edges."""
    nodes = write("n.csv", GOOD_NODES)
    return lambda edges, **options: from_tables(nodes, write("e.csv", edges), **options)


@pytest.mark.parametrize(
    ("named", "weights"), [({}, [3, 3]), ({"weight": "strength"}, [4, 4]), ({"weight": False}, None)]
)
def test_the_column_is_the_named_one_or_weight_or_none(graph, named, weights) -> None:
    data = graph(TABLE, **named)
    assert (None if data.edge_weight is None else data.edge_weight.tolist()) == weights
    assert "arc_index" not in data


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


@pytest.mark.parametrize(
    ("edges", "weight", "message"),
    [
        ("1,2,1\n2,1,1e60", None, r"row 2, column 'weight' is 1e\+60: weights must be finite .* > 0; change it, drop"),
        ("1,2,inf", None, r"e\.csv, row 1, column 'weight' is inf"),
        ("1,2,1\n2,1,", "weight", r"e\.csv, row 2, column 'weight' is empty: weights must be"),
        ("1,2,1\n1,2,much", "weight", r"e\.csv, row 2, column 'weight' is 'much', which is not a number: weights must"),
        ("1,2,1", "strength", r"weight\('strength'\) is not a column of .*e\.csv, which has weight"),
        ("1,2,1", "target", r"weight\('target'\) is not a column of .*e\.csv"),
    ],
)
def test_bad_weights_are_named(graph, edges, weight, message) -> None:
    with pytest.raises(InputError, match=message):
        graph(f"source,target,weight\n{edges}\n", weight=weight)


def test_weights_may_be_0_and_signed_columns_are_features(graph) -> None:
    data = graph("source,target,weight\n1,2,2.5\n2,1,0\n")
    assert (data.edge_weight.tolist(), data.edge_report.repeated) == ([2.5, 2.5], 0)
    assert data.notes == ["1 edges of weight 0 are left out"]
    data = graph("source,target,weight\n1,2,-0.5\n1,1,2\n")
    assert "edge_weight" not in data
    assert data.x[0].tolist() == [0, 2, 0.75, 2, 2, 0.5]
    assert data.feature_names == ["f", *(f"edges: {name}" for name in ("count", "mean weight", "max weight", *SIGNED))]


def test_ids_of_different_types_meet_as_text() -> None:
    nodes = pd.DataFrame({"id": ["1", "2", "x"], "f": [1, 2, 3]})
    assert from_tables(nodes, pd.DataFrame({"source": [1], "target": [2]})).edge_index.tolist() == [[0, 1], [1, 0]]
    floats = pd.DataFrame({"source": [1.0], "target": [2.0]})
    assert from_tables(nodes, floats).edge_index.tolist() == [[0, 1], [1, 0]]
