"""Dates and lists as people write them: how a column of texts is to be read, and the values that it has."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"),
    *("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y", "%a %b %d %Y"),
)
_TIMES = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_JOINTS = (" ", "T", ", ")
_ZONE = re.compile(r"\s*(?:Z|UTC|GMT)$")
_OFFSET = re.compile(r"[+-]\d{2}:?\d{2}$")
_AMBIGUOUS = {"%m/%d/%Y": "%d/%m/%Y", "%m-%d-%Y": "%d-%m-%Y", "%m/%d/%y": "%d/%m/%y"}
SEPARATORS = ("|", ";", ",")
LEAST_SHARE, MOST_TOKENS_SHARE = 0.2, 0.5
"""Of lists, at least the first share has several tokens, and at most the second share of all tokens are distinct."""
LEAST_LISTS, LONGEST_TOKEN = 8, 40
"""Separators that prose has, too, need so many distinct lists; no token is longer than so many characters."""


def date_format(texts: Sequence[str]) -> str | None:
    """The ``strptime`` format in which all of these texts are dates, perhaps with a time; ``None`` if there is none.

    Where days and months can be told apart by no row, months come first, as in most files with slashes.
    """
    first, rest = texts[:1], texts[1:]
    if not first or not re.search(r"\d", first[0]):
        return None
    plain = _ZONE.sub("", first[0].strip())
    zone = "%z" if ":" in plain and _OFFSET.search(plain) else ""
    for day in _DAYS:
        times = [""] if ":" not in plain else [f"{joint}{time}{zone}" for joint in _JOINTS for time in _TIMES]
        for form in (f"{day}{time}" for time in times):
            if not np.isnat(dates(first, form)).any() and not np.isnat(dates(rest, form)).any():
                return form
    return None


def is_ambiguous(form: str, texts: Sequence[str]) -> bool:
    """Whether the texts are dates as well if days come before months."""
    other = next((form.replace(ours, theirs) for ours, theirs in _AMBIGUOUS.items() if ours in form), None)
    return other is not None and not np.isnat(dates(texts, other)).any()


def dates(texts: Sequence[str], form: str) -> NDArray[np.datetime64]:
    """The points in time (UTC, microseconds) that texts stand for in a format, NaT for others."""
    plain = pd.Series([_ZONE.sub("", text.strip()) for text in texts], dtype=object)
    read = pd.to_datetime(plain, format=form, errors="coerce", utc="%z" in form or None)
    if "%z" in form:
        read = read.dt.tz_localize(None)
    found: NDArray[np.datetime64] = read.to_numpy("datetime64[us]")
    return found


def list_separator(texts: Sequence[str]) -> str | None:
    """What stands between the tokens of lists such as ``rock|pop`` or ``["rock", "pop"]``; ``None`` for no lists.

    Brackets are meant by ``[]``. A text with a separator is a list only if tokens come back.
    """
    if texts and all(text.strip()[:1] == "[" and text.strip()[-1:] == "]" for text in texts):
        return "[]"
    for separator in SEPARATORS:
        several = sum(separator in text for text in texts)
        if separator != SEPARATORS[0] and len(texts) < LEAST_LISTS:
            continue
        if several >= max(1, LEAST_SHARE * len(texts)):
            tokens = Counter(token for text in texts for token in tokens_of(text, separator))
            if 0 < len(tokens) <= MOST_TOKENS_SHARE * tokens.total() and max(map(len, tokens)) <= LONGEST_TOKEN:
                return separator
    return None


def tokens_of(text: str, separator: str) -> list[str]:
    """The tokens of a list that is written in this way."""
    if separator == "[]":
        try:
            return [str(value) for value in json.loads(text)]
        except ValueError:  # Python's spelling
            text, separator = text.strip()[1:-1], ","
    return [token for part in text.split(separator) if (token := part.strip().strip("'\""))]
