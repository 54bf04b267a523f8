import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gcnsl import InputError, from_tables
from gcnsl.graph.columns import is_used, written_number

from .cases import column_of

CATEGORIES = pa.array(pd.Categorical(["a", "b", "a"]))
KINDS = {
    "integers": ([1, 2, None], "number"),
    "fractions": ([0.5, 1.5, float("nan")], "number"),
    "decimals": ([Decimal("1.5"), Decimal(2), None], "number"),
    "half precision": (np.array([1, 2, 3], dtype=np.float16), "number"),
    "the same number everywhere": ([5, 5, 5], "constant"),
    "booleans": ([True, False, None], "binary"),
    "0 and 1": ([0, 1, 1], "binary"),
    "0.0 and 1.0": ([0.0, 1.0, None], "binary"),
    "text": (["a", "b", "a"], "category"),
    "digits as text": (["7", "007", "7"], "category"),
    "categories": (CATEGORIES, "category"),
    "categories of integers": (pa.array(pd.Categorical([7, 8, 7])), "category"),
    "one text, or none": (["a", "a", None], "category"),
    "dates": ([date(2020, 1, 1), date(2021, 1, 1), None], "date"),
    "timestamps": ([datetime(2020, 1, 1, 12), datetime(2021, 1, 1), None], "date"),
    "times": ([time(6), time(12), None], "date"),
    "durations": ([timedelta(hours=6), timedelta(1), None], "date"),
    "names": (["ann", "bob", None], "id"),
    "one text": (["a", "a", "a"], "constant"),
    "nothing": ([None, None, None], "empty"),
    "nothing but NaN": ([float("nan")] * 3, "empty"),
    "text for nothing": (["NA", "", "null"], "empty"),
}


@pytest.mark.parametrize("case", KINDS)
def test_the_kind_of_a_column(case) -> None:
    values, kind = KINDS[case]
    columns = column_of(values)
    assert columns.kinds == {"c": kind}
    assert columns.used == ({"c": kind} if is_used(kind) else {})
    assert columns.left_out == ([] if is_used(kind) else ["c"])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None, 2**40], "number", [1, np.nan, 2**40]),
        ([0.5, float("nan")], "number", [0.5, np.nan]),
        ([True, False, None], "binary", [1, 0, np.nan]),
        (["1.5", "NA", "-2e3"], "number", [1.5, np.nan, -2000]),
        ([Decimal("1.5"), None], "number", [1.5, np.nan]),
        (pa.array(pd.Categorical([7, 8])), "number", [7, 8]),
        ([None, None], "number", [np.nan, np.nan]),
        ([None, None], "date", [np.nan, np.nan]),
        ([date(1970, 1, 3), None], "date", [2, np.nan]),
        (pa.array([date(1970, 1, 3)], pa.date64()), "date", [2]),
        ([datetime(1970, 1, 2, 12), datetime(1969, 12, 31)], "date", [1.5, -1]),
        ([datetime(1970, 1, 2, 12, tzinfo=timezone.utc)], "date", [1.5]),
        (pa.array([datetime(1970, 1, 2, 12)], pa.timestamp("s")), "date", [1.5]),
        ([time(6)], "date", [0.25]),
        (pa.array([time(6)], pa.time32("s")), "date", [0.25]),
        ([timedelta(days=-3)], "date", [-3]),
        (["1970-01-03", "1970-01-02 12:00:00"], "date", [2, 1.5]),
    ],
)
def test_numbers(values, kind, expected) -> None:
    assert np.array_equal(
        column_of(values, kind).numbers("c", kind), np.array(expected, dtype=np.float64), equal_nan=True
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["b", "a", None, "b", "NA"], ["b", "a", None, "b", None]),
        ([7, 3, None], ["7", "3", None]),
        ([7.0, 3.0, float("nan")], ["7", "3", None]),
        (["7.0", "7", "007", "7.00"], ["7.0", "7", "007", "7.00"]),
        ([2.5, 3.0], ["2.5", "3"]),
        ([True, False], ["true", "false"]),
        ([date(2020, 1, 1)], ["2020-01-01"]),
        (CATEGORIES, ["a", "b", "a"]),
        (pa.chunked_array([["a"], [None, "b"], ["a"]]), ["a", None, "b", "a"]),
        ([None, None], [None, None]),
    ],
)
def test_levels(values, expected) -> None:
    codes, texts = column_of(values, "category").levels("c")
    assert [None if code < 0 else texts[code].as_py() for code in codes.tolist()] == expected
    assert len(set(texts.to_pylist())) == len(texts)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["1", None, "tall"], "number", r"^nodes\.csv, row 3, column 'c' is 'tall', which is not a number: correct it"),
        ([None, date(2020, 1, 1)], "number", "row 2, column 'c' is '2020-01-01', which is not a number"),
        (["2020-01-01", "soon"], "date", "row 2, column 'c' is 'soon', which is not a date"),
        ([None, 5], "date", "row 2, column 'c' is '5', which is not a date"),
        (
            [1.0, float("inf")],
            "number",
            r"row 2, column 'c' is inf: a feature must be finite.*; drop=\['c'\] leaves it",
        ),
        ([None, [1, 2]], "category", r"row 2, column 'c' is '\[1, 2\]', which is not a category"),
    ],
)
def test_values_of_another_kind_are_named(values, kind, message) -> None:
    columns = column_of(values, kind)
    with pytest.raises(InputError, match=message):
        columns.levels("c") if kind == "category" else columns.numbers("c", kind)


EDGES = pd.DataFrame({"source": ["0"], "target": ["1"]})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234),
        ("-12,345,678.5", -12345678.5),
        (" 45.3% ", 45.3),
        ("45 %", 45),
        ("$1,234.00", 1234),
        ("-$5", -5),
        ("$-5", -5),
        ("€ 3.50", 3.5),
        ("3.50 €", 3.5),
        ("(1,200)", -1200),
        ("1 234 567", 1234567),
        ("1\u00a0234", 1234),
        ("\u22127", -7),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("7.", 7),
    ],
)
def test_numbers_in_everyday_spelling(text, number) -> None:
    assert written_number(text) == number


@pytest.mark.parametrize(("text", "number"), [("1.234,5", 1234.5), ("3,14", 3.14), ("-1.000", -1000), ("12,5 %", 12.5)])
def test_decimal_commas(text, number) -> None:
    assert written_number(text, ",") == number


@pytest.mark.parametrize("text", ["", "a", "1,23", "12,34,567", "1-5", "--5", "+-5", "007", "1 23", "1.2.3", "%", "$"])
def test_other_texts_are_no_numbers(text) -> None:
    assert math.isnan(written_number(text))


def test_columns_of_everyday_numbers_are_numbers(write) -> None:
    rows = [(f"{1000 + 7 * i:,}", f"{i / 10:.1f}%".replace(".", ","), f"{i}", f"x{i}") for i in range(30)]
    text = "".join(f'{i},"{a}","{b}",{c},{d},{"ab"[i % 2]}\n' for i, (a, b, c, d) in enumerate(rows))
    data = from_tables(write("n.csv", f"id,votes,share,count,name,label\n{text}"), EDGES)
    kinds = {"votes": "number", "share": "number, decimal comma", "count": "number", "name": "id"}
    assert data.columns.kinds == kinds
    assert np.allclose(data.x[:, 0], 1000 + 7 * np.arange(30))
    assert np.allclose(data.x[:, 1], np.arange(30) / 10)
    one = write("n.csv", 'id,votes,share,count,name,label\nnew,"1,5","1,5",2,y,\n')
    with pytest.raises(ValueError, match="column 'votes' is '1,5', which is not a number"):
        from_tables(one, EDGES.iloc[:0], encoder=data.encoder)
    again = write("n.csv", 'id,votes,share,count,name,label\nnew,"1,500","1,500",2,y,\n')
    assert from_tables(again, EDGES.iloc[:0], encoder=data.encoder).x.tolist() == [[1500, 1.5, 2]], "as in training"
