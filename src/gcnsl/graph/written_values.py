"""Dates and lists as people write them: how a column of texts is to be read, and the values that it has."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

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
MOST_TOKENS_SHARE = 0.5
"""A text with a separator is a list only if tokens come back: their number is at most this share of all of them."""


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


def list_reader(texts: Iterable[str]) -> Callable[[str], list[str]] | None:
    """How lists such as ``rock|pop`` or ``["rock", "pop"]`` are read; ``None`` if the texts are no lists."""
    texts = list(texts)
    readers = [_bracketed, *(_split_at(separator) for separator in SEPARATORS)]
    for reader in readers:
        tokens = Counter(token for text in texts for token in reader(text))
        several = sum(len(reader(text)) > 1 for text in texts)
        whole = reader is _bracketed and all(text.strip()[:1] == "[" for text in texts)
        if whole or (several >= 0.2 * len(texts) and 0 < len(tokens) <= MOST_TOKENS_SHARE * tokens.total()):
            longest = max(map(len, tokens), default=0)
            if whole or longest <= 40:
                return reader
    return None


def _bracketed(text: str) -> list[str]:
    """The elements of a list in JSON or Python's spelling."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return []
    try:
        return [str(value) for value in json.loads(text)]
    except ValueError:
        return [found for part in text[1:-1].split(",") if (found := part.strip().strip("'\""))]


def _split_at(separator: str) -> Callable[[str], list[str]]:
    return lambda text: [token for part in text.split(separator) if (token := part.strip())]
