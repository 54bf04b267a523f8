import contextlib
import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcnsl import InputError, from_arrays
from gcnsl.graph import from_tables

NODES = "id,age,height,label\nann,1,1.5,red\nbob,2,2.5,blue\n007,3,3.5,\n7,4,4.5,red\n"
EDGES = "source,target\nann,bob\nbob,ann\n7,007\n"


@pytest.fixture
def write(tmp_path):
    """Write a file below a folder of the test's own and return its path."""

    def write(name: str, text: str):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def check_small_graph(data) -> None:
    assert data.node_ids.tolist() == ["ann", "bob", "007", "7"]
    assert data.feature_names == ["age", "height"]
    assert data.x.tolist() == [[1, 1.5], [2, 2.5], [3, 3.5], [4, 4.5]]
    assert data.class_names == ["blue", "red"]
    assert data.y.tolist() == [1, 0, -1, 1]
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_csv(write) -> None:
    check_small_graph(from_tables(write("n.csv", NODES), write("e.csv", EDGES)))


def test_columns_may_come_in_any_order(write) -> None:
    nodes = "age,label,height,id\n1,red,1.5,ann\n2,blue,2.5,bob\n3,,3.5,007\n4,red,4.5,7\n"
    edges = "weight,target,source\n1,bob,ann\n2,ann,bob\n3,007,7\n"
    check_small_graph(from_tables(write("n.csv", nodes), write("e.csv", edges)))


def test_ids_are_the_first_column_that_is_no_row_number(write) -> None:
    nodes = "__index_level_0__,name,age,height,label\n0,ann,1,1.5,red\n1,bob,2,2.5,blue\n2,007,3,3.5,\n3,7,4,4.5,red\n"
    check_small_graph(from_tables(write("n.csv", nodes), write("e.csv", EDGES)))


def test_gzipped_and_tab_separated(write) -> None:
    tabs = EDGES.replace(",", "\t")
    check_small_graph(from_tables(write("n.csv.gz", NODES), write("e.tsv", tabs)))


def test_parquet_frames_and_arrow(write, tmp_path) -> None:
    nodes = pd.read_csv(write("n.csv", NODES), dtype={"id": str})
    edges = pd.read_csv(write("e.csv", EDGES), dtype=str)
    nodes.to_parquet(tmp_path / "n.parquet")
    edges.to_parquet(tmp_path / "e.parquet")
    check_small_graph(from_tables(tmp_path / "n.parquet", str(tmp_path / "e.parquet")))
    check_small_graph(from_tables(nodes, edges))
    check_small_graph(from_tables(pa.Table.from_pandas(nodes), pa.Table.from_pandas(edges)))
    check_small_graph(from_tables(nodes.astype({"id": "category"}), edges.astype("category")))


def test_row_numbers_that_pandas_leaves_in_a_table_are_no_feature(write, tmp_path) -> None:
    nodes = pd.read_csv(write("n.csv", NODES), dtype={"id": str}).sample(frac=1, random_state=0)
    edges = pd.read_csv(write("e.csv", EDGES), dtype=str)
    nodes.to_parquet(tmp_path / "n.parquet")
    for source in (tmp_path / "n.parquet", pa.Table.from_pandas(nodes)):
        assert from_tables(source, edges).feature_names == ["age", "height"]


def test_columns_by_name_and_position(write) -> None:
    nodes = write("n.csv", "key,a,kind,note,b\nx,1,k,hi,2\ny,3,m,ho,4\n")
    edges = write("e.csv", "from,to,weight\nx,y,3\n")
    data = from_tables(nodes, edges, label="kind", drop=["note"])
    assert data.feature_names == ["a", "b"]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert from_tables(nodes, edges, features=["b"], label="kind").feature_names == ["b"]


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


def test_label_types() -> None:
    edges = pd.DataFrame({"source": [1], "target": [2]})
    for labels, y, names in [
        ([3, 1, -1], [1, 0, -1], ["1", "3"]),
        ([3.0, np.nan, 1.0], [1, -1, 0], ["1", "3"]),
        ([10, 9, 10], [1, 0, 1], ["9", "10"]),
        (["10", "9", None], [0, 1, -1], ["10", "9"]),
        ([True, False, None], [1, 0, -1], ["false", "true"]),
    ]:
        data = from_tables(pd.DataFrame({"id": [1, 2, 3], "f": [0, 0, 1], "label": labels}), edges)
        assert data.y.tolist() == y
        assert data.class_names == names


def test_split_column(write) -> None:
    nodes = write("n.csv", "id,f,label,split\n1,0,a,train\n2,0,b,train\n3,0,a,val\n4,0,b,test\n5,1,a,\n")
    data = from_tables(nodes, write("e.csv", "source,target\n1,2\n"))
    assert data.train_mask.tolist() == [[True], [True], [False], [False], [False]]
    assert data.val_mask.nonzero().tolist() == [[2, 0]]
    assert data.test_mask.nonzero().tolist() == [[3, 0]]


GOOD_NODES = "id,f,label\n1,0,a\n2,1,b\n"
GOOD_EDGES = "source,target\n1,2\n"


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        (
            GOOD_NODES,
            "source,target\n1,2\n2,9\n1,9\n",
            {},
            r"e\.csv, row 2, column 'target' is '9', .*n\.csv \(2 such",
        ),
        ("id,f\n1,0\n2,0\n1,3\n", GOOD_EDGES, {}, r"n\.csv, row 3: id '1' is given to an earlier row too"),
        ("id,f\n1,0\n2,inf\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'f' is inf"),
        ("id,f\n1,0\n2,1e300\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'f' is 1e\+300"),
        ("id,f\n1,0\n2,\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'f' is empty"),
        ("id,f\n1,0\n2,nan\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'f' is empty"),
        ("id,f\n1,0\n2,tall\n", GOOD_EDGES, {}, r"n\.csv: column 'f' holds string, not numbers, e\.g\. '0'; .*drop="),
        ("id,f,label\n1,0,a\n2,0,a\n", GOOD_EDGES, {}, r"n\.csv: column 'label' has one class only \('a'\)"),
        ("id,f,label\n1,0,1.5\n2,0,2\n", GOOD_EDGES, {}, r"n\.csv: column 'label' .* y holds 1\.5"),
        ("id,label\n1,a\n2,b\n", GOOD_EDGES, {}, r"n\.csv has no feature column"),
        ("id,f\n", GOOD_EDGES, {}, r"n\.csv has no rows: the graph is empty"),
        ("id,f\n1,\n2,\n", GOOD_EDGES, {}, r"n\.csv, row 1, column 'f' is empty"),
        ("", GOOD_EDGES, {}, r"n\.csv can't be read as a csv table"),
        ("id,f,f\n1,0,0\n2,0,0\n", GOOD_EDGES, {}, r"n\.csv has several columns 'f'"),
        ("id,f\n1,0\n2\n", GOOD_EDGES, {}, r"n\.csv can't be read as a csv table: .*Expected 2 columns"),
        ("id,f\n1,0\n,1\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'id' is empty"),
        (GOOD_NODES, "source\n1\n", {}, r"e\.csv has 1 column\(s\), too few for target"),
        (GOOD_NODES, GOOD_EDGES, {"label": "kind"}, r"n\.csv has no column label\('kind'\): it has id, f, label"),
        (GOOD_NODES, GOOD_EDGES, {"drop": ["g"]}, r"n\.csv has no column drop\('g'\)"),
        (GOOD_NODES, GOOD_EDGES, {"target": "source"}, "source and target are both 'source'"),
        ("id,f,label,split\n1,0,a,train\n2,0,b,dev\n", GOOD_EDGES, {}, r"row 2, column 'split' is 'dev': write train"),
        ("id,f,label,split\n1,0,a,val\n2,0,b,test\n", GOOD_EDGES, {}, "marks no node as train"),
    ],
)
def test_bad_tables_are_named(write, nodes, edges, options, message) -> None:
    with pytest.raises(InputError, match=message):
        from_tables(write("n.csv", nodes), write("e.csv", edges), **options)


def test_bad_arguments_are_named(write, tmp_path) -> None:
    edges = write("e.csv", GOOD_EDGES)
    with pytest.raises(InputError, match=r"nodes.*there is no such file"):
        from_tables(tmp_path / "absent.csv", edges)
    with pytest.raises(InputError, match="is of no known kind"):
        from_tables(write("n.xls", GOOD_NODES), edges)
    with pytest.raises(InputError, match="can't be read as a parquet table"):
        from_tables(write("n.parquet", GOOD_NODES), edges)
    with pytest.raises(InputError, match="nodes is a list"):
        from_tables([1, 2], edges)
    with pytest.raises(InputError, match=r"nodes can't be read .* values of one type"):
        from_tables(pd.DataFrame({"id": [1, "a"], "f": [1, 2]}), edges)


text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4)
cell = st.one_of(st.integers(-3, 3), st.floats(width=32), st.none(), st.booleans(), text)
column_name = st.sampled_from(["id", "label", "source", "target", "split", "f", "g", ""])
tables = st.dictionaries(column_name, st.lists(cell, min_size=3, max_size=3), min_size=0, max_size=5)
raw_text = st.one_of(
    st.text(st.sampled_from('id,sourcetarglbf01\n\t";-.x'), max_size=60),
    st.binary(max_size=60).map(lambda raw: raw.decode("latin1")),
)


def loads_or_complains(nodes, edges) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(InputError):
            assert from_tables(nodes, edges).validate()


@given(tables, tables)
def test_any_frames_load_or_raise_our_error(nodes, edges) -> None:
    loads_or_complains(pd.DataFrame(nodes), pd.DataFrame(edges))


@given(raw_text, raw_text)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_loads_or_raises_our_error(tmp_path, nodes, edges) -> None:
    for name, content in (("n.csv", nodes), ("e.csv", edges)):
        (tmp_path / name).write_bytes(content.encode("latin1", errors="ignore"))
    loads_or_complains(tmp_path / "n.csv", tmp_path / "e.csv")


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
