import json
from datetime import datetime, timedelta
from math import isnan
from statistics import median

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import from_arrays
from gcnsl.graph import ColumnEncoder, Columns, encode_columns
from gcnsl.graph.column_encoder import MIN_FREQUENCY, with_encoder
from gcnsl.graph.tables import Table, read_table

from .cases import any_columns, column_of

EPOCH = datetime(1970, 1, 1)


def masks(columns: Columns):
    return st.lists(st.booleans(), min_size=len(columns), max_size=len(columns)).filter(any).map(np.array)


columns_and_rows = any_columns().flatmap(lambda columns: st.tuples(st.just(columns), masks(columns)))


def features_of(columns: Columns, rows) -> list[list[float]]:
    """The features by the text of the module, one value after the other."""
    numbers, marks, levels, parts = [], [], [], []
    for name, kind in columns.used.items():
        if kind == "category":
            codes, texts = columns.levels(name)
            values = [None if code < 0 else texts[code].as_py() for code in codes.tolist()]
            trained = [value for value, row in zip(values, rows, strict=True) if row]
            known = sorted({value for value in trained if value is not None})
            frequent = [value for value in known if trained.count(value) >= MIN_FREQUENCY]
            groups = [*frequent, *([None] if None in trained else []), *(["rare"] if frequent != known else [])]
            for k, group in enumerate(groups):
                others = group == "rare" and k == len(groups) - 1 and frequent != known
                is_known = [value in frequent or (value is None and None in trained) for value in values]
                levels.append([float(not is_known[i] if others else values[i] == group) for i in range(len(values))])
        else:
            values = columns.numbers(name, kind).tolist()
            trained = [value for value, row in zip(values, rows, strict=True) if row]
            known = [value for value in trained if not isnan(value)]
            middle = median(known) if known else 0.0
            numbers.append([middle if isnan(value) else value for value in values])
            if len(known) < len(trained):
                marks.append([float(isnan(value)) for value in values])
            if columns.is_on_calendar(name):
                calendar = (lambda t: t.year, lambda t: t.month, lambda t: t.weekday(), lambda t: t.hour)
                varying = [part for part in calendar if len({part(EPOCH + timedelta(v)) for v in known}) > 1]
                parts += [[float(part(EPOCH + timedelta(v))) for v in numbers[-1]] for part in varying]
    return numbers + marks + levels + parts


@given(columns_and_rows)
def test_features_are_those_of_the_oracle(case) -> None:
    columns, rows = case
    encoder = ColumnEncoder.fit(columns, rows)
    x = encoder.transform(columns).to_dense()
    expected = np.array(features_of(columns, rows)).reshape(-1, len(columns)).T
    assert x.dtype == torch.float32
    found = np.array([encoder.own_units(row) for row in x.numpy()]).reshape(expected.shape)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(expected).max(initial=1))
    assert len(encoder.feature_names) == len(encoder.feature_columns) == x.shape[1]
    assert set(encoder.feature_columns) == columns.used.keys()


@given(columns_and_rows)
def test_a_state_that_went_through_json_gives_the_same_bits(case) -> None:
    columns, rows = case
    encoder = ColumnEncoder.fit(columns, rows)
    plain, tensors = encoder.state()
    again = ColumnEncoder.from_state(json.loads(json.dumps(plain)), tensors)
    assert again.transform(columns).to_dense().equal(encoder.transform(columns).to_dense())
    assert again.feature_names == encoder.feature_names
    assert again.feature_columns == encoder.feature_columns


@given(columns_and_rows, st.randoms())
def test_other_rows_teach_nothing_and_rows_may_come_in_any_order(case, random) -> None:
    columns, rows = case
    order = list(range(len(columns)))
    random.shuffle(order)
    trained = Columns.for_kinds(Table(columns.table.arrow.filter(pa.array(rows)), "nodes.csv"), columns.kinds)
    shuffled = Columns.for_kinds(Table(columns.table.arrow.take(order), "nodes.csv"), columns.kinds)
    encoder, alone = ColumnEncoder.fit(columns, rows), ColumnEncoder.fit(trained)
    assert alone.transform(columns).to_dense().equal(encoder.transform(columns).to_dense())
    assert encoder.transform(shuffled).to_dense().equal(encoder.transform(columns).to_dense()[order])


def encoded(training, new, kind="auto") -> list[list[float]]:
    columns = column_of(training, kind)
    return ColumnEncoder.fit(columns).transform(column_of(new, columns.kinds["c"])).tolist()


def test_values_that_training_did_not_have() -> None:
    assert encoded(["a"] * 3 + ["b"] * 3, ["b", "z", None]) == [[0, 1], [0, 0], [0, 0]]
    assert encoded(["a"] * 3 + ["b"], ["a", "b", "z", None]) == [[1, 0], [0, 1], [0, 1], [0, 1]], "rare"
    assert encoded(["a"] * 3 + [None], ["a", "z", None]) == [[1, 0], [0, 0], [0, 1]], "missing"
    assert encoded([1.0, 2.0, 4.0], [3.0, None]) == [[3], [2]]
    assert encoded([1.0, None, 4.0], [3.0, None]) == [[3, 0], [2.5, 1]]
    assert encoded([7] * 3 + [8] * 3, ["7", "8", "9"], "category") == [[1, 0], [0, 1], [0, 0]]


def test_many_levels_are_stored_sparsely() -> None:
    columns = column_of([f"level {i % 20}" for i in range(100)])
    assert ColumnEncoder.fit(columns).transform(columns).layout == torch.sparse_csr
    columns = column_of([f"level {i % 5}" for i in range(100)])
    assert ColumnEncoder.fit(columns).transform(columns).layout == torch.strided
    table = pa.table({"level": [f"level {i % 20}" for i in range(100)], "age": range(100)})
    columns = Columns.read(Table(table, "nodes.csv"), table.column_names)
    assert ColumnEncoder.fit(columns).transform(columns).layout == torch.strided, "quantities are dense"


@pytest.mark.parametrize(
    "values",
    [
        1.7e9 + np.arange(3600.0),  # seconds, of which float32 knows 22
        1e300 * np.arange(1.0, 100),
        1e-300 * np.arange(1.0, 100),
        np.array([-1.7e308, 0.0, 1.7e308]),
        2.0**60 + np.arange(0, 2.0**20, 2.0**10),
        np.array([1e31, 1e31]),
        19_700 + np.arange(86_400) / 86_400,
    ],
)
def test_values_that_float32_cannot_hold_stay_apart(values) -> None:
    columns = column_of([*values, None])
    encoder = ColumnEncoder.fit(columns)
    x = encoder.transform(columns).numpy()
    assert np.isfinite(x).all()
    assert len(np.unique(x[:-1, 0])) == len(np.unique(values))
    assert (np.diff(x[:-1, 0]) >= 0).all()
    back = encoder.own_units(x[-2])
    assert back[0] == pytest.approx(values[-1], rel=1e-5)
    assert back[1] == 0, "the mark of a missing value has no unit"


def test_a_graph_is_encoded_for_other_training_rows() -> None:
    columns = column_of(["a", "a", "a", "b", "b", "b"])
    data = from_arrays(np.empty((6, 0)), [[0], [1]])
    data.columns = columns
    first, last = (encode_columns(data, torch.arange(6) // 3 == half) for half in (0, 1))
    assert (first.feature_names, last.feature_names) == (["c=a"], ["c=b"])
    assert first.x.flatten().tolist() == [1, 1, 1, 0, 0, 0]
    assert with_encoder(first, last.encoder).x.equal(last.x)
    assert data.x.shape == (6, 0), "the graph itself stays as it is"


def test_dates_lists_and_texts_go_all_the_way() -> None:
    """Encoded from the training rows, saved, restored, and the same for another table with the same rows."""
    rows = 40
    frame = pd.DataFrame(
        {
            "joined": [f"{1 + k % 28:02d}.{1 + k % 12:02d}.{2001 + k % 5} 1{k % 3}:30" for k in range(rows)],
            "genres": ["|".join(["rock", "pop", "jazz"][: 1 + k % 3]) if k % 7 else None for k in range(rows)],
            "about": [f"person {k} likes {['long walks', 'good books'][k % 2]} by the sea" for k in range(rows)],
        }
    )
    columns = Columns.read(read_table(frame, "nodes"), list(frame))
    assert columns.kinds == {"joined": "date %d.%m.%Y %H:%M", "genres": "list |", "about": "text"}
    encoder = ColumnEncoder.fit(columns, np.arange(rows) < 30)
    x = pd.DataFrame(encoder.transform(columns).numpy(), columns=encoder.feature_names)
    stamps = pd.to_datetime(frame["joined"], format="%d.%m.%Y %H:%M")
    np.testing.assert_allclose(x["joined"], (stamps - pd.Timestamp(0)) / pd.Timedelta("1D"), rtol=1e-6)
    for part in ("year", "month", "weekday", "hour"):
        expected = [t.weekday() if part == "weekday" else getattr(t, part) for t in stamps]
        np.testing.assert_array_equal(x[f"{part} of joined"], expected)
    for token in ("rock", "pop", "jazz"):
        np.testing.assert_array_equal(x[f"genres: {token}"], frame["genres"].fillna("").str.contains(token))
    plain, tensors = encoder.state()
    again = ColumnEncoder.from_state(json.loads(json.dumps(plain)), tensors)
    other = Columns.for_kinds(read_table(frame.iloc[::-1], "nodes"), again.kinds)
    np.testing.assert_array_equal(again.transform(other).numpy()[::-1], encoder.transform(columns).numpy())
    assert encoder.feature_names == again.feature_names


def test_what_is_learned_from_texts_is_learned_from_training_rows() -> None:
    frame = pd.DataFrame({"about": [f"some words and number {k} here" for k in range(20)]})
    changed = frame.copy()
    changed.loc[15:, "about"] = "quite another sentence at last"
    rows = np.arange(20) < 15
    one, other = (
        ColumnEncoder.fit(Columns.read(read_table(each, "nodes"), ["about"]), rows) for each in (frame, changed)
    )
    assert all(one.state()[1][name].equal(value) for name, value in other.state()[1].items())
