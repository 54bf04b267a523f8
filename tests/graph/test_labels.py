import numpy as np
import pandas as pd
import pytest
import torch

from gcnsl import InputError, from_arrays
from gcnsl.graph import encode_labels, read_labels
from gcnsl.graph.labels import check_labels, number_classes

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


@pytest.mark.parametrize("kind", sorted(LABELS.keys() - {"integers", "torch"}))
def test_a_graph_has_the_same_numbers(kind) -> None:
    y, classes = LABELS[kind]
    data = from_arrays(X, EDGES, y)
    assert data.y.tolist() == [1, -1, 0, 1]
    assert data.class_names == [str(c) for c in classes]


def test_booleans() -> None:
    numbers, classes = encode_labels([True, False, True])
    assert numbers.tolist() == [1, 0, 1]
    assert classes.tolist() == [False, True]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, -1], "y has no label among 2 entries"),
        ([None, None], "y has no label"),
        ([[0], [1]], r"y has shape \(2, 1\): give one label for each node"),
        ([[0], [1, 2]], "y is not an array"),
        ([0.5, 1], r"y holds 0\.5: a class can't be a fraction"),
        (np.array(["a", "a\0"], dtype=object), r"y holds 'a\\x00': a class can't .*broken characters"),
        (["a", "\ud800"], r"y holds '\\ud800': a class can't .*broken characters"),
        (np.array([0.5, None, 1], dtype=object), r"y holds 0\.5: a class can't be a fraction"),
        ([1e19, 1], r"y holds 1e\+19"),
        ([np.inf, 1], "y holds inf"),
    ],
)
def test_labels_that_cannot_be_encoded(y, message) -> None:
    with pytest.raises(InputError, match=message):
        encode_labels(y)


def test_integers_are_class_numbers_and_others_are_encoded() -> None:
    encode = lambda y: (from_arrays(X, EDGES, y).y.tolist(), from_arrays(X, EDGES, y).class_names)  # noqa: E731
    assert encode([1, -1, 0, 2]) == ([1, -1, 0, 2], ["0", "1", "2"])
    assert encode([1.0, float("nan"), 3.0, 1.0]) == ([0, -1, 1, 0], ["1", "3"])
    assert encode(np.array([7, -1, None, 5], dtype=object)) == ([1, -1, -1, 0], ["5", "7"])
    assert encode(np.array([2, "a", None, 1], dtype=object)) == ([1, 2, -1, 0], ["1", "2", "a"])
    assert encode([True, False, True, False]) == ([1, 0, 1, 0], ["False", "True"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1]}, r"y has shape \(2,\): give one label for each of the 4 nodes"),
        ({"y": [0, 0, 0, -1]}, "y has only one class"),
        ({"y": [0, 1, -2, 0]}, r"y\[2\] is -2: labels must be from 0 to 1"),
        ({"y": [0, 1, 2, 0], "class_names": ["a", "b"]}, r"y\[2\] is 2: labels must be from 0 to 1"),
        ({"y": [0.5, 1, 2, 3]}, "y holds 0.5"),
        ({"y": ["a", "b", "a", "b"], "class_names": ["a", "b"]}, "class_names is for integer labels only"),
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
    with pytest.raises(InputError, match=r"y holds .*: a class must be an integer, a truth value or text; convert it"):
        number_classes(labels)


def test_codes_are_not_taken_for_class_numbers() -> None:
    with pytest.raises(InputError, match=r"y\[1\] is 2000000000: integer labels are class numbers"):
        check_labels(np.array([1_000_000_000, 2_000_000_000]), 2)
    assert check_labels(np.array([0, 900]), 2)[1][-1] == "900"
