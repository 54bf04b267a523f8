import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.graph.written_values import date_format, dates, list_separator, tokens_of

FORMATS = (
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%Y/%m/%d",
    "%d %b %Y",
    "%B %d, %Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
)
moments = st.datetimes(datetime.datetime(1931, 1, 1), datetime.datetime(2099, 12, 31))


@pytest.mark.parametrize("form", FORMATS)
@given(times=st.lists(moments, min_size=1, max_size=9))
def test_dates_are_those_that_pandas_reads_with_the_right_format(form, times) -> None:
    times.append(datetime.datetime(2020, 12, 31, 13, 5))  # which tells days from months
    texts = [time.strftime(form) for time in times]
    found = date_format(texts)
    assert found is not None
    np.testing.assert_array_equal(dates(texts, found), pd.to_datetime(texts, format=form).to_numpy("datetime64[us]"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-10-22 13:56:29 UTC", "2025-10-22T13:56:29"),
        ("2024-01-05T10:22:11+02:00", "2024-01-05T08:22:11"),
        ("20200131", "2020-01-31"),
        ("5 Jan 2020", "2020-01-05"),
    ],
)
def test_zones_and_other_spellings(text, moment) -> None:
    form = date_format([text])
    assert form is not None
    assert dates([text], form)[0] == np.datetime64(moment)


@pytest.mark.parametrize("texts", [["hello 2"], ["12345678"], ["3/4"], ["10:22"], ["01/31/2020", "31/01/2020"], []])
def test_what_is_no_date(texts) -> None:
    assert date_format(texts) is None


@pytest.mark.parametrize(
    ("texts", "separator", "tokens"),
    [
        (["rock|pop", "pop", "jazz|pop|rock", "rock"], "|", ["rock", "pop"]),
        (['["a, b", "c"]', '["c"]'], "[]", ["a, b", "c"]),
        (["['KC', 'MB']", "['KC']"], "[]", ["KC", "MB"]),
        ([f"{a}; {b}" for a in "abc" for b in "abc"], ";", ["a", "a"]),
    ],
)
def test_lists(texts, separator, tokens) -> None:
    assert list_separator(texts) == separator
    assert tokens_of(texts[0], separator) == tokens


@pytest.mark.parametrize(
    "texts",
    [[f"{a}ton, TX" for a in "abcdefgh"], ["yes", "no"], [f"well, this is number {k}" for k in range(20)], []],
)
def test_what_is_no_list(texts) -> None:
    assert list_separator(texts) is None
