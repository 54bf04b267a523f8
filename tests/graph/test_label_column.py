import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gcnsl import InputError, from_tables
from gcnsl.graph import read_labels
from gcnsl.graph.label_column import label_classes
from gcnsl.graph.labels import UNKNOWN
from gcnsl.graph.table_reading import Table, read_table

EDGES = pd.DataFrame({"source": [1], "target": [2]})
LARGE = 2**62 + 1


def classes(values, unknown=None) -> tuple[list[str], list[int]]:
    y, names = label_classes(Table(pa.table({"label": values}), "nodes"), "label", unknown)
    return names, y.tolist()


def classes_in_csv(write, values, unknown=None) -> tuple[list[str], list[int]]:
    nodes = write("n.csv", "id,f,label\n" + "".join(f"{i},{i},{value}\n" for i, value in enumerate(values)))
    data = from_tables(nodes, EDGES, unknown=unknown)
    return data.class_names, data.y.tolist()


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        ([10, 9, -1], ["9", "10"], [1, 0, -1]),
        (["10", "9", "-1"], ["10", "9"], [0, 1, -1]),
        (["007", "7", None], ["007", "7"], [0, 1, -1]),
        ([1.0, 2.0, np.nan], ["1", "2"], [0, 1, -1]),
        ([LARGE, LARGE + 1, None], [str(LARGE), str(LARGE + 1)], [0, 1, -1]),
        (pa.array([2**64 - 1, 5, None], pa.uint64()), ["5", str(2**64 - 1)], [1, 0, -1]),
        ([True, False, None], ["false", "true"], [1, 0, -1]),
        (pa.array(pd.Categorical(["b", None, "a"])), ["a", "b"], [1, -1, 0]),
    ],
)
def test_classes_keep_their_meaning(values, names, y) -> None:
    assert classes(values) == (names, y)


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        (["10", "9", "-1"], ["9", "10"], [1, 0, -1]),
        (["007", "7", ""], ["007", "7"], [0, 1, -1]),
        (["1.0", "2.0", ""], ["1", "2"], [0, 1, -1]),
        (["1", "2.0", "NA"], ["1", "2"], [0, 1, -1]),
        ([str(LARGE), str(LARGE + 1), ""], [str(LARGE), str(LARGE + 1)], [0, 1, -1]),
        ([str(10**20), str(10**20 + 1), ""], [str(10**20), str(10**20 + 1)], [0, 1, -1]),
        (["1e5", "2e5", ""], ["1e5", "2e5"], [0, 1, -1]),
        (["True", "False", ""], ["False", "True"], [1, 0, -1]),
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
    assert classes([1, 2, 0], [0]) == (["1", "2"], [0, 1, -1])
    assert classes([1.0, 2.0, 0.0, None], ["0"]) == (["1", "2"], [0, 1, -1, -1])
    assert classes_in_csv(write, [1, 2, "?"], ["?"]) == (["1", "2"], [0, 1, -1])
    assert classes_in_csv(write, ["NA", "null", "", "-1"], []) == (["-1", "NA", "null"], [1, 2, -1, 0])
    assert classes(["NA", "null", "", "-1"], []) == (["-1", "NA", "null"], [1, 2, -1, 0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "a"], r"nodes: column 'label' has only one class \('a'\)"),
        (
            [2.0, 1.5, 0.5],
            r"^nodes, row 2, column 'label' is 1\.5: a class can't be a fraction .*; give integers or names",
        ),
        (["a", "a\0", "b"], r"^nodes, row 2, column 'label' is a\x00: .* or have broken characters; give integers or"),
        ([2.0, None, 1e19], r"^nodes, row 3, column 'label' is 1e\+19: "),
        ([[1], [2]], "nodes: column 'label' can't be used as the label"),
    ],
)
def test_bad_labels_are_named(values, message) -> None:
    with pytest.raises(InputError, match=message):
        classes(values)


def test_a_fraction_in_a_text_file_is_named_with_its_row(write) -> None:
    message = r"n\.csv, row 4, column 'label' is 2\.50: .* leave it empty if the class is unknown"
    with pytest.raises(InputError, match=message):
        classes_in_csv(write, ["1", "2", "", "2.50", "1"])
    assert classes_in_csv(write, ["1", "2", "", "2.50", "1"], ["2.50"]) == (["1", "2"], [0, 1, -1, -1, 0])


def test_long_integers_beside_unknown_labels_stay_apart(tmp_path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text("id,label\n1,9007199254740992\n2,9007199254740993\n3,-1\n")
    table = read_table(file, "nodes", text=[("label", None)])
    numbers, classes = label_classes(table, "label", None)
    assert classes == ["9007199254740992", "9007199254740993"]
    assert numbers.tolist() == [0, 1, -1]
