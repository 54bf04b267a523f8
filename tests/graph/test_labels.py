import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from gcnsl import InputError, from_arrays, from_tables
from gcnsl.graph import encode_labels, read_labels
from gcnsl.graph.labels import UNKNOWN, UnknownLabelsWarning, number_classes, read_label_column
from gcnsl.graph.tables import Table

from .cases import EDGES, X, Y

NAMES = np.array(["elm", "oak"], dtype=object)
LABELS = {
    "integers": ([15, -1, 5, 15], [5, 15]),
    "floats": (np.array([15, np.nan, 5, 15]), [5, 15]),
    "-1 as a float": (np.array([15, -1.0, 5, 15]), [5, 15]),
    "torch": (torch.tensor([15, -1, 5, 15]), [5, 15]),
    "object integers": (np.array([15, None, 5, 15], dtype=object), [5, 15]),
    "object floats": (np.array([15.0, None, 5.0, 15.0], dtype=object), [5, 15]),
    "nullable": (pd.Series([15, None, 5, 15], dtype="Int64"), [5, 15]),
    "None among names": (["oak", None, "elm", "oak"], NAMES),
    "NaN among names": (["oak", np.nan, "elm", "oak"], NAMES),
    "-1 among names": (["oak", -1, "elm", "oak"], NAMES),
    "-1 as a string": (np.array(["oak", "-1", "elm", "oak"]), NAMES),
    "pandas": (pd.Series(["oak", None, "elm", "oak"]), NAMES),
    "categories": (pd.Series(["oak", None, "elm", "oak"]).astype("category"), NAMES),
    "NA among names": (["oak", "NA", "elm", "oak"], NAMES),
    "nothing among names": (["oak", "", "elm", "oak"], NAMES),
    "many digits": ([2**63, None, -5, 2**63], [-5, 2**63]),
    "names and numbers": (["b", None, 7, "b"], ["7", "b"]),
    "names and a long number": (["b", None, 10**40, "b"], [str(10**40), "b"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_are_numbered_and_classes_keep_their_kind(kind) -> None:
    y, expected = LABELS[kind]
    numbers, classes = encode_labels(y)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [1, -1, 0, 1]
    assert isinstance(classes, np.ndarray)
    assert classes.tolist() == list(expected)
    assert isinstance(classes.tolist()[0], type(next(iter(expected))))
    values, labelled = read_labels(y)
    assert labelled.tolist() == [True, False, True, True]
    assert [str(value) for value in values[labelled]] in ([str(classes[c]) for c in (1, 0, 1)], ["15.0", "5.0", "15.0"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, -1], "y has no label among 2 entries"),
        ([None, None], "y has no label"),
        ([[0], [1]], r"y has shape \(2, 1\): give one label for each node"),
        ([[0], [1, 2]], "y is not an array"),
        (
            np.arange(60) + 0.5,
            r"60 different numbers among 60 labels, such as 30\.5, are a quantity, .* predicts classes",
        ),
        (np.arange(100), "100 different numbers among 100 labels, .* cut it into a few ranges"),
        (np.array(["a", "a\0"], dtype=object), r"y holds 'a\\x00': a class can't .*broken characters"),
        (["a", "\ud800"], r"y holds '\\ud800': a class can't .*broken characters"),
        ([np.inf, 1], "y holds inf: a class can't be infinite"),
    ],
)
def test_labels_that_cannot_be_encoded(y, message) -> None:
    with pytest.raises(InputError, match=message):
        encode_labels(y)


@pytest.mark.parametrize("y", [[1, -1, 1, -1], [1.0, -1.0, None, -1.0], np.array(["1", "-1", "-1", ""])])
def test_one_and_minus_one_are_two_classes(y) -> None:
    found = number_classes(y)
    assert [str(c) for c in found.classes] == ["-1", "1"]
    assert found.counted_unknown == {}
    assert "-1" not in found.unknown
    assert number_classes(y, unknown=[-1]).counted_unknown == {"-1": sum(str(c).startswith("-1") for c in y)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1]}, r"y has shape \(2,\): give one label for each of the 4 nodes"),
        ({"y": [0, 0, 0, -1]}, "y has only one class"),
        ({"y": [0, 1, 2, 0], "class_names": ["a", "b"]}, r"y\[2\] is 2: class numbers are from 0 to 1"),
        ({"y": ["a", "b", "a", "b"], "class_names": ["a", "b"]}, "with class_names, give class numbers"),
    ],
)
def test_bad_labels_are_named(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        from_arrays(**{"x": X, "edge_index": EDGES, "y": Y, **arguments})


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2], dtype="datetime64[D]"),
        np.array([0, 1, 2], dtype="datetime64[ns]"),
        np.array([0, 1, 2], dtype="timedelta64[s]"),
        np.array([b"a", b"b", b"c"]),
        np.array([0, 1j, 2]),
        [object(), object(), object()],
        [frozenset(), frozenset([1]), "a"],
    ],
)
def test_labels_that_no_file_can_keep_are_refused(labels) -> None:
    with pytest.raises(InputError, match=r"y holds .*: a class must be a number, a truth value or text; convert it"):
        number_classes(labels)


ONE_EDGE = pd.DataFrame({"source": [1], "target": [2]})
LARGE = 2**62 + 1


pytestmark = pytest.mark.filterwarnings("ignore::gcnsl.graph.labels.UnknownLabelsWarning")


def classes(values, unknown=None) -> tuple[list[Any], list[int]]:
    found = read_label_column(Table(pa.table({"label": values}), "nodes"), "label", unknown)
    return found.classes.tolist(), found.numbers.tolist()


def classes_in_csv(write, values, unknown=None) -> tuple[list[Any], list[int]]:
    nodes = write("n.csv", "id,f,label\n" + "".join(f"{i},{i},{value}\n" for i, value in enumerate(values)))
    data = from_tables(nodes, ONE_EDGE, unknown=unknown)
    return data.class_names, data.y.tolist()


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


def test_many_unknown_labels_are_said_aloud(write) -> None:
    with pytest.warns(UnknownLabelsWarning, match="^2 rows have the label NA, which counts as unknown: unknown="):
        classes_in_csv(write, ["a", "NA", "b", "NA"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classes_in_csv(write, ["a", "NA", "b", "NA"], []) == (["NA", "a", "b"], [1, 0, 2, 0])
        classes_in_csv(write, ["a", "b"] * 200 + ["NA"])


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
