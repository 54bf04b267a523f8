import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gcnsl import InputError, from_tables
from gcnsl.graph import read_labels
from gcnsl.graph.labels import UNKNOWN, UnknownLabelsWarning, read_label_column
from gcnsl.graph.tables import Table

EDGES = pd.DataFrame({"source": [1], "target": [2]})
LARGE = 2**62 + 1


pytestmark = pytest.mark.filterwarnings("ignore::gcnsl.graph.labels.UnknownLabelsWarning")


def classes(values, unknown=None) -> tuple[list[Any], list[int]]:
    found = read_label_column(Table(pa.table({"label": values}), "nodes"), "label", unknown)
    return found.classes.tolist(), found.numbers.tolist()


def classes_in_csv(write, values, unknown=None) -> tuple[list[Any], list[int]]:
    nodes = write("n.csv", "id,f,label\n" + "".join(f"{i},{i},{value}\n" for i, value in enumerate(values)))
    data = from_tables(nodes, EDGES, unknown=unknown)
    return data.class_names, data.y.tolist()


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        ([10, 9, -1], [9, 10], [1, 0, -1]),
        (["10", "9", "-1"], ["10", "9"], [0, 1, -1]),
        (["007", "7", None], ["007", "7"], [0, 1, -1]),
        ([1.0, 2.0, np.nan], [1, 2], [0, 1, -1]),
        ([LARGE, LARGE + 1, None], [LARGE, LARGE + 1], [0, 1, -1]),
        (pa.array([2**64 - 1, 5, None], pa.uint64()), [5, 2**64 - 1], [1, 0, -1]),
        ([True, False, None], [False, True], [1, 0, -1]),
        (pa.array(pd.Categorical(["b", None, "a"])), ["a", "b"], [1, -1, 0]),
    ],
)
def test_classes_keep_their_meaning(values, names, y) -> None:
    assert classes(values) == (names, y)


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        (["10", "9", "-1"], [9, 10], [1, 0, -1]),
        (["007", "7", ""], ["007", "7"], [0, 1, -1]),
        (["1.0", "2.0", ""], [1, 2], [0, 1, -1]),
        (["1", "2.0", "NA"], [1, 2], [0, 1, -1]),
        (["0.5", "2", "0.50"], [0.5, 2.0], [0, 1, 0]),
        (["1", "-1", ""], [-1, 1], [1, 0, -1]),
        ([str(LARGE), str(LARGE + 1), "-1"], [LARGE, LARGE + 1], [0, 1, -1]),
        ([str(10**20), str(10**20 + 1), ""], [str(10**20), str(10**20 + 1)], [0, 1, -1]),
        (["1e5", "2e5", ""], ["1e5", "2e5"], [0, 1, -1]),
        (["True", "False", ""], [False, True], [1, 0, -1]),
        (["true", "false", ""], ["false", "true"], [1, 0, -1]),
    ],
)
def test_a_text_file_has_numbers_where_they_are_written_as_such(write, values, names, y) -> None:
    assert classes_in_csv(write, values) == (names, y)


@pytest.mark.parametrize("unknown", ["", *UNKNOWN])
def test_the_same_labels_are_unknown_in_every_source(write, unknown) -> None:
    expected = ["a", "b"], [0, 1, -1]
    assert classes(["a", "b", unknown]) == expected
    assert classes_in_csv(write, ["a", "b", unknown]) == expected
    assert read_labels(["a", "b", unknown])[1].tolist() == [True, True, False]


def test_other_labels_can_be_unknown(write) -> None:
    assert classes([1, 2, 0], [0]) == ([1, 2], [0, 1, -1])
    assert classes([1.0, 2.0, 0.0, None], ["0"]) == ([1, 2], [0, 1, -1, -1])
    assert classes_in_csv(write, [1, 2, "?"], ["?"]) == ([1, 2], [0, 1, -1])
    assert classes_in_csv(write, ["NA", "null", "", "-1"], []) == (["-1", "NA", "null"], [1, 2, -1, 0])
    assert classes(["NA", "null", "", "-1"], []) == (["-1", "NA", "null"], [1, 2, -1, 0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "a"], r"nodes: column 'label' has only one class \('a'\)"),
        (
            ["a", "NA", "a"],
            r"has only one class \('a'\), and 1 with 'NA' count as unknown: label nodes of at least two",
        ),
        (["a", "a\0", "b"], r"^nodes, row 2, column 'label' is 'a\\x00': a class can't have broken characters"),
        ([2.0, None, float("inf")], r"^nodes, row 3, column 'label' is inf: "),
        (
            [i + 0.5 for i in range(60)],
            r"^nodes, column 'label': 60 different numbers among 60 labels, .* predicts classes",
        ),
        ([[1], [2]], "nodes: column 'label' can't be used as the label"),
    ],
)
def test_bad_labels_are_named(values, message) -> None:
    with pytest.raises(InputError, match=message):
        classes(values)


def test_many_unknown_labels_are_said_aloud(write) -> None:
    with pytest.warns(UnknownLabelsWarning, match="^2 rows have the label NA, which counts as unknown: unknown="):
        classes_in_csv(write, ["a", "NA", "b", "NA"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classes_in_csv(write, ["a", "NA", "b", "NA"], []) == (["NA", "a", "b"], [1, 0, 2, 0])
        classes_in_csv(write, ["a", "b"] * 200 + ["NA"])
