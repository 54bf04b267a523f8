import contextlib
import warnings

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gcnsl import InputError
from gcnsl.graph import from_tables

from .cases import GOOD_EDGES, GOOD_NODES

NODES = "id,age,height,label\nann,1,1.5,red\nbob,2,2.5,blue\n007,3,3.5,\n7,4,4.5,red\n"
EDGES = "source,target\nann,bob\nbob,ann\n7,007\n"


def check_small_graph(data) -> None:
    assert data.node_ids.tolist() == ["ann", "bob", "007", "7"]
    assert data.feature_names == ["age", "height"]
    assert data.x.tolist() == [[1, 1.5], [2, 2.5], [3, 3.5], [4, 4.5]]
    assert data.class_names == ["blue", "red"]
    assert data.y.tolist() == [1, 0, -1, 1]
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_gzipped_tab_separated_and_in_any_order(write) -> None:
    nodes = "__index_level_0__,name,age,label,height\n0,ann,1,red,1.5\n1,bob,2,blue,2.5\n2,007,3,,3.5\n3,7,4,red,4.5\n"
    edges = "weight,target,source\n1,bob,ann\n2,ann,bob\n3,007,7\n".replace(",", "\t")
    check_small_graph(from_tables(write("n.csv.gz", nodes), write("e.tsv", edges)))


def test_parquet_frames_and_arrow(write, tmp_path) -> None:
    nodes = pd.read_csv(write("n.csv", NODES), dtype={"id": str})
    edges = pd.read_csv(write("e.csv", EDGES), dtype=str)
    nodes.to_parquet(tmp_path / "n.parquet")
    edges.to_parquet(tmp_path / "e.parquet")
    check_small_graph(from_tables(tmp_path / "n.parquet", str(tmp_path / "e.parquet")))
    check_small_graph(from_tables(nodes, edges))
    shuffled = pa.Table.from_pandas(nodes.sample(frac=1, random_state=0))
    assert from_tables(shuffled, edges).feature_names == ["age", "height"], "row numbers are no feature"
    check_small_graph(from_tables(pa.Table.from_pandas(nodes), pa.Table.from_pandas(edges)))
    check_small_graph(from_tables(nodes.astype({"id": "category"}), edges.astype("category")))


def test_several_splits_are_several_runs(write) -> None:
    nodes = write("n.csv", "id,f,label,split,b\n1,0,a,train,test\n2,1,b,train,train\n3,0,a,val,train\n4,0,b,test,\n")
    edges = write("e.csv", GOOD_EDGES)
    data = from_tables(nodes, edges, split=["b", "split"])
    assert data.train_mask.T.tolist() == [[False, True, True, False], [True, True, False, False]]
    assert data.test_mask.T.tolist() == [[True, False, False, False], [False, False, False, True]]
    assert data.val_mask.T.tolist() == [[False] * 4, [False, False, True, False]]
    assert data.feature_names == ["f"]
    one = from_tables(nodes, edges, split="b")
    assert one.feature_names == ["f"], "a column called split is never a feature"
    assert one.train_mask.tolist() == [False, True, True, False]


@pytest.mark.parametrize("missing", ["", "-"])
def test_folds_are_kept_with_the_graph(write, missing) -> None:
    nodes = write("n.csv", f"id,f,label,part\n1,0,a,0\n2,1,b,2\n3,0,a,{missing}\n4,0,b,1\n")
    edges = write("e.csv", GOOD_EDGES)
    if missing:
        with pytest.raises(InputError, match=r"row 3, column 'part' is '-': the number of a fold is 0, 1, 2, ... or"):
            from_tables(nodes, edges, fold="part")
    else:
        data = from_tables(nodes, edges, fold="part")
        assert data.fold.tolist() == [0, 2, -1, 1]
        assert data.feature_names == ["f"]
    with pytest.raises(InputError, match="fold"):
        from_tables(nodes, edges, fold="nope")


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        (
            GOOD_NODES,
            "source,target\n1,2\n2,9\n1,9\n",
            {},
            r"e\.csv, row 2, column 'target' is '9', .*n\.csv \(2 such",
        ),
        ("id,f\n1,0\n2,0\n1,3\n", GOOD_EDGES, {}, r"n\.csv, row 3: an earlier row has the id '1' too"),
        ("id,f\n1,0\n2,inf\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'f' is inf"),
        ("id,f,label\n1,0,a\n2,0,a\n", GOOD_EDGES, {}, r"n\.csv: column 'label' has only one class \('a'\)"),
        ("id,f\n", GOOD_EDGES, {}, r"n\.csv has no rows: the graph is empty"),
        ("id,f,f\n1,0,0\n2,0,0\n", GOOD_EDGES, {}, r"n\.csv has several columns 'f'"),
        ("id,f\n1,0\n,1\n", GOOD_EDGES, {}, r"n\.csv, row 2, column 'id' is empty"),
        (GOOD_NODES, GOOD_EDGES, {"drop": ["g"]}, r"drop\('g'\) is not a column of .*n\.csv"),
        (GOOD_NODES, GOOD_EDGES, {"numeric": ["label"]}, r"numeric\('label'\) is not a feature"),
        (GOOD_NODES, GOOD_EDGES, {"numeric": ["f"], "drop": ["f"]}, r"numeric\('f'\) is not a feature"),
        (GOOD_NODES, GOOD_EDGES, {"numeric": ["f"], "categorical": ["f"]}, r"categorical\('f'\) can't be all of"),
        (
            "id,f\n1,0\n2,tall\n",
            GOOD_EDGES,
            {"numeric": ["f"]},
            r"n\.csv, row 2, column 'f' is 'tall', which is not a number: correct it or leave",
        ),
        (GOOD_NODES, GOOD_EDGES, {"features": ["f", "label"]}, r"features\('label'\) is an id, a label, a split"),
        (GOOD_NODES, GOOD_EDGES, {"features": ["f", "f"]}, r"features\('f'\) is .* named twice"),
        (GOOD_NODES, GOOD_EDGES, {"features": ["f"], "drop": ["f"]}, r"features\('f'\) is .* dropped"),
        (GOOD_NODES, GOOD_EDGES, {"target": "source"}, "source and target are both 'source'"),
        ("id,f,label,split\n1,0,a,train\n2,0,b,dev\n", GOOD_EDGES, {}, r"row 2, column 'split' is 'dev': write train"),
        ("id,f,label,split\n1,0,a,val\n2,0,b,test\n", GOOD_EDGES, {}, "marks no node as train"),
    ],
)
def test_bad_tables_are_named(write, nodes, edges, options, message) -> None:
    with pytest.raises(InputError, match=message):
        from_tables(write("n.csv", nodes), write("e.csv", edges), **options)


text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4)
cell = st.one_of(st.integers(-3, 3), st.floats(width=32), st.none(), st.booleans(), text)
column_name = st.sampled_from(["id", "label", "source", "target", "weight", "split", "f", "g", ""])
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


PETS = pd.DataFrame(
    {
        "id": range(12),
        "name": [f"pet {i}" for i in range(12)],
        "weight": [1.5, None, *range(10)],
        "colour": ["red", "blue", None] * 4,
        "chip": [7, 8, 8] * 4,
        "born": pd.date_range("2020-01-01", periods=12),
        "tame": [True, False, True] * 4,
        "label": ["cat", "dog"] * 6,
    }
)
MEETINGS = pd.DataFrame({"source": [1], "target": [2]})


def test_columns_of_any_kind_are_encoded_alike_from_every_source(tmp_path) -> None:
    PETS.to_csv(tmp_path / "n.csv", index=False)
    PETS.to_parquet(tmp_path / "n.parquet")
    data = from_tables(PETS, MEETINGS, categorical=["chip"])
    assert data.columns.kinds == {
        "name": "id",
        "weight": "number",
        "colour": "category",
        "chip": "category",
        "born": "date",
        "tame": "binary",
    }
    assert data.feature_names == [
        "weight",
        "born",
        "tame",
        "weight (missing)",
        *("colour=blue", "colour=red", "colour (missing)", "chip=7", "chip=8", "weekday of born"),
    ]
    assert data.x[:2].tolist() == [[1.5, 18262, 1, 0, 0, 1, 0, 1, 0, 2], [4, 18263, 0, 1, 1, 0, 0, 0, 1, 3]]
    categories = PETS.astype({"colour": "category", "chip": "category"})
    for nodes in (tmp_path / "n.csv", tmp_path / "n.parquet", categories):
        again = from_tables(nodes, MEETINGS, categorical=["chip"])
        assert again.x.equal(data.x)
        assert again.feature_names == data.feature_names
        assert from_tables(nodes, MEETINGS, encoder=data.encoder).x.equal(data.x), "as a model reads it"


def test_a_model_reads_its_own_columns_only(write) -> None:
    encoder = from_tables(PETS, MEETINGS).encoder
    more = from_tables(PETS.assign(age=1, name="x"), MEETINGS, encoder=encoder)
    assert more.feature_names == encoder.feature_names
    with pytest.raises(InputError, match="nodes has no column 'weight', which the model was trained with"):
        from_tables(PETS.drop(columns="weight"), MEETINGS, encoder=encoder)
    heavy = PETS.assign(weight=["1"] * 11 + ["heavy"])
    with pytest.raises(InputError, match="nodes, row 12, column 'weight' is 'heavy', which is not a number"):
        from_tables(heavy, MEETINGS, encoder=encoder)


def test_a_split_of_rows_without_labels_is_named_by_row_and_column() -> None:
    nodes = pd.DataFrame(
        {"id": [1, 2, 3], "x": [0.1, 0.2, 0.4], "label": ["a", "b", None], "fold": ["train", "train", "test"]}
    )
    edges = pd.DataFrame({"source": [1], "target": [2]})
    with pytest.raises(InputError, match="nodes, row 3, column 'fold' selects a row without a label: leave it empty"):
        from_tables(nodes, edges, split="fold")
    with pytest.raises(InputError, match="nodes has a split in column 'fold' but no labels"):
        from_tables(nodes.drop(columns="label"), edges, split="fold")


def test_digits_that_were_text_in_training_stay_text(write) -> None:
    edges = write("e.csv", "source,target\n1,2\n")
    nodes = write("n.csv", "id,zip\n" + "".join(f"{i},{code}\n" for i, code in enumerate(["007", "7", "x"] * 3)))
    data = from_tables(nodes, edges)
    assert data.feature_names == ["zip=007", "zip=7", "zip=x"]
    digits = write("digits.csv", "id,zip\n1,007\n2,7\n")
    assert from_tables(digits, edges, encoder=data.encoder).x.tolist() == [[1, 0, 0], [0, 1, 0]]
