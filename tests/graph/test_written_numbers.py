import math

import numpy as np
import pandas as pd
import pytest

from gcnsl import from_tables
from gcnsl.graph.columns import decimal_of, written_number
from gcnsl.graph.tables import is_plain_number

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


def test_a_column_has_one_spelling() -> None:
    assert decimal_of(["1,234", "5"]) == "."
    assert decimal_of(["1,234", "3,14"]) == ","
    assert decimal_of(["1,234.5", "3,14"]) is None
    assert decimal_of(["1,234", "x"]) is None
    assert decimal_of([]) is None


def test_what_every_program_reads() -> None:
    assert all(map(is_plain_number, ["1", "-2.5", "0.000e+00", ".5", " 7 ", "007"]))
    assert not any(map(is_plain_number, ["1,234", "5%", "", "a", "1 2"]))


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
