import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from gcnsl import from_tables
from gcnsl.graph.column_report import ColumnSummary, are_codes, summarize_columns, telling_columns
from gcnsl.graph.summary import harms

N = 60
EDGES = pd.DataFrame({"source": [1], "target": [2]})


def summaries(**columns) -> dict[str, ColumnSummary]:
    data = from_tables(pd.DataFrame({"id": range(N), **columns}), EDGES)
    return {column.name: column for column in summarize_columns(data)}


CODES = np.arange(N) % 5
REMARKS = {
    "codes": (CODES, "few whole numbers: codes rather than quantities\\?", "categorical"),
    "codes, some missing": (np.where(CODES, CODES, np.nan), "few whole numbers: codes .*", "categorical"),
    "negative": (CODES - 2, None, None),
    "fractions": (CODES / 2, None, None),
    "binary": (np.arange(N) % 2, None, None),
    "nothing but 0": (np.zeros(N), None, None),
    "too many for codes": (np.arange(N) // 2, None, None),
    "numbers that differ": (np.arange(N) * 7, "whole numbers, different in every row: an id\\?", "drop"),
    "quantities": (np.sqrt(np.arange(N)), None, None),
    "text that differs": ([f"p{i}" for i in range(N)], "different in every row: an id", "categorical"),
    "numbers with a mistake": (
        ["?", *map(str, range(N - 1))],
        "mostly numbers, but '\\?' is none: leave such cells.*",
        None,
    ),
    "text": (["a", "b", "c"] * (N // 3), None, None),
}


@pytest.mark.parametrize("case", REMARKS)
def test_what_looks_wrong_is_remarked_on(case) -> None:
    values, remark, remedy = REMARKS[case]
    found = summaries(c=values)["c"]
    if remark is None:
        assert found.remark is None
    else:
        assert re.fullmatch(remark, found.remark)
    assert found.remedy == remedy


def test_what_is_done_with_each_column() -> None:
    found = summaries(
        age=[None, *range(1, N)],
        city=["oslo"] * (N - 2) + ["rome", None],
        born=pd.date_range("2020-01-01", periods=N),
        note=None,
        same=5,
        user_id=np.arange(N) * 7,
    )
    told = {name: dataclasses.astuple(column)[1:7] for name, column in found.items()}
    assert told == {
        "age": ("number", "1.0", N - 1, 1, 2, "as it is, gaps the median and marked"),
        "city": ("category", "oslo", 2, 1, 3, "one-hot, rare values together"),
        "born": ("date", "2020-01-01 00:00:00", N, 0, 3, "days, month, weekday"),
        "note": ("empty", "", 0, N, 0, "left out"),
        "same": ("constant", "5", 1, 0, 0, "left out"),
        "user_id": ("id", "0", N, 0, 0, "left out"),
    }


@pytest.mark.parametrize(
    ("distance", "remark"),
    [
        (0, "edges join equal values, but not close ones, more often than chance: codes?"),
        (3, None),
        (None, "few whole numbers: codes rather than quantities?"),
    ],
    ids=["the same code", "close numbers", "any"],
)
def test_edges_decide_where_they_tell(distance, remark, monkeypatch) -> None:
    random = np.random.default_rng(0)
    values = np.repeat(random.permutation(30) + 1, 10)
    ends = random.integers(0, 300, (20_000, 2))
    apart = np.abs(values[ends[:, 0]] - values[ends[:, 1]])
    kept = ends[(random.random(len(ends)) < 0.05) | (False if distance is None else apart <= distance)]
    data = from_tables(pd.DataFrame({"id": range(300), "c": values}), pd.DataFrame(kept, columns=["source", "target"]))
    (found,) = summarize_columns(data)
    assert (found.remark, found.remedy) == (remark, None if remark is None else "categorical")
    monkeypatch.setattr("gcnsl.graph.column_report.MOST_TESTED", 0)
    assert summarize_columns(data)[0].remark == "few whole numbers: codes rather than quantities?"


NODES, VALUES = 1000, 80


def joined(values, share) -> np.ndarray:
    """Edges between random nodes, kept with a probability that depends on the values of both ends."""
    random = np.random.default_rng(1)
    ends = random.integers(0, len(values), (2, 40_000))
    return ends[:, random.random(ends.shape[1]) < share(*values[ends])]


def like_codes(first, second):
    return np.where(first == second, 1.0, 0.05)


def like_quantities(first, second):
    return np.exp(-np.abs(first - second) / 10)


@pytest.fixture(params=range(5))
def values(request) -> np.ndarray:
    return np.random.default_rng(request.param).integers(1, VALUES + 1, NODES).astype(np.float32)


@pytest.mark.parametrize(("share", "expected"), [(like_codes, True), (like_quantities, False)])
def test_edges_tell_codes_from_quantities(values, share, expected) -> None:
    assert are_codes(values, joined(values, share)) is expected


def test_edges_that_have_nothing_to_do_with_the_values_never_tell_of_codes(values) -> None:
    assert not are_codes(values, joined(values, lambda first, second: np.full(first.shape, 0.1)))


@pytest.mark.parametrize("unknown", [0.0, np.nan])
def test_nodes_without_a_value_do_not_count(values, unknown) -> None:
    edges = joined(values, like_quantities)
    some = np.where(np.arange(NODES) % 3 == 0, unknown, values + 2000)
    assert are_codes(some, edges) is False


def test_a_column_that_tells_the_label_is_named() -> None:
    random = np.random.default_rng(0)
    label = random.integers(0, 3, 300)
    other = np.where(random.random(300) < 0.5, label, random.integers(0, 3, 300))
    noise = {f"noise {k}": random.random(300) for k in range(3)}
    table = {"id": range(300), "group": [f"g{c}" for c in label], "score": label * 10.5, "hint": other, **noise}
    data = from_tables(pd.DataFrame({**table, "label": label}), EDGES)
    assert telling_columns(data.columns, data.y.numpy()) == {"group": 1.0, "score": 1.0}
    (sentence,) = harms(data)
    assert sentence.startswith("Columns that tell the label by themselves (group 100%, score 100%)")
