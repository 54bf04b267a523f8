"""The feature columns of a table, as they were read, and what kind of values each holds.

The kind of a column follows from its type and its values, or from its name in ``categorical`` or ``numeric``:

- ``number``: integers, decimals and fractions, also in text as people write them: ``1,234``, ``45.3%``, ``$5.00``.
- ``number, decimal comma``: text such as ``1.234,5``.
- ``binary``: booleans, and numbers that are all 0 or 1.
- ``date``: dates, timestamps, times of day and durations, all of which become a number of days; ``date %d.%m.%Y`` and
  the like: text that is a date in this format.
- ``list |`` and the like: text with several tokens, such as ``rock|pop`` or ``["rock", "pop"]``.
- ``text``: sentences, and names that are mostly different from row to row, but not always.
- ``category``: other text, and the categories of pandas and Arrow.
- ``id`` and ``constant``: text that is different in every row, whole numbers that are and are called so, and values
  that are the same in every row. They are left out.
- ``empty``: no value at all. It is left out.

A value is missing if it is ``None``, NaN, or one of the texts in :data:`gcnsl.graph.tables.MISSING`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import ColumnError, InputError
from gcnsl.graph.tables import MISSING, Table, is_plain_number
from gcnsl.graph.wide_features import Wide
from gcnsl.graph.written_values import date_format, dates, list_separator

if TYPE_CHECKING:
    from gcnsl.graph.relations import Relations

DECIMAL_COMMA = "number, decimal comma"
FEW_LEVELS = 255
"""With more distinct texts, a column of several words is free text even if some of them come back."""
LEAST_IDS = 20
"""Whole numbers look like ids if they are different in all rows, and there are at least this many rows."""
LEAST_WORDS = 3.0
"""Free text has at least so many words on average."""

_ID = re.compile(r"(|.*(?:^|[\W_])(?:id|uid|uuid|guid|key|index|idx)|.*[a-z](?:Id|ID)|Unnamed: \d+)")
"""The names of columns whose whole numbers are ids if all are different."""
_PER_DAY = {"D": 1, "s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_WHOLE_AS_FRACTION = r"^(-?\d+)\.0+$"

_SPACES = re.compile(r"(?<=\d)[ \u00a0\u202f](?=\d{3}(\D|$))")
_AROUND = re.compile(r"\s*([+-]?)\s*[$€£¥₹]?\s*([+-]?)(.*?)\s*[$€£¥₹%]?\s*")
"""Signs before and after a currency, and what is between them and a unit."""
_WHOLE = r"(?:\d{1,3}(?:%s\d{3})+|(?:0|[1-9]\d*))"
"""With groups of three digits or without; a leading zero makes a code of it."""
_FORMS = {
    ".": re.compile(rf"(?:{_WHOLE % ','}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"),
    ",": re.compile(rf"{_WHOLE % re.escape('.')}(?:,\d+)?"),
}


def sort_of(kind: str) -> str:
    """A kind without the way in which its values are written: ``date`` for ``date %d.%m.%Y``."""
    return kind.partition(" ")[0].rstrip(",")


def is_number(kind: str) -> bool:
    """Whether values of this kind are numbers: quantities, dates or 0 and 1."""
    return sort_of(kind) in ("number", "date", "binary")


def is_used(kind: str) -> bool:
    """Whether columns of this kind become features."""
    return is_number(kind) or sort_of(kind) in ("category", "list", "text")


def is_of_edges(name: str) -> bool:
    """Whether a column of the nodes is made of the columns of edges."""
    return name.startswith(("edges: ", "out-edges: ", "in-edges: "))


CodedTexts = tuple[NDArray[np.int64], pa.Array]
"""Which of the distinct texts each row has (n; -1 if missing), and the texts."""


def written_number(text: str, decimal: str = ".") -> float:
    """The number that a text stands for; NaN if it stands for none. Percentages keep their unit: 45 % is 45."""
    text = text.strip().replace("\u2212", "-")
    if text.startswith("(") and text.endswith(")"):
        text = f"-{text[1:-1]}"  # a negative amount in accounting
    found = _AROUND.fullmatch(text)
    if found is None or (found[1] and found[2]):
        return math.nan
    digits = _SPACES.sub("", found[3])
    if not _FORMS[decimal].fullmatch(digits):
        return math.nan
    plain = digits.replace(",", "") if decimal == "." else digits.replace(".", "").replace(",", ".")
    return float(f"{found[1] or found[2]}{plain}")


def decimal_of(texts: Collection[str]) -> str | None:
    """How the decimals of a column of texts are written; ``None`` if one of the texts is not a number.

    Where both readings are possible, commas divide thousands: ``1,234`` is more often 1234 than 1.234.
    """
    fits = (mark for mark in _FORMS if texts and not any(math.isnan(written_number(text, mark)) for text in texts))
    return next(fits, None)


def written_day(text: str) -> float:
    """The days since 1970 of a date or time in ISO 8601; NaN if the text is none."""
    try:
        return float(pa.scalar(text.strip()).cast(pa.timestamp("us")).value / _PER_DAY["us"])
    except pa.ArrowInvalid:
        return math.nan


_READERS: dict[str, Callable[[str], float]] = {
    "number": written_number,
    "binary": written_number,
    DECIMAL_COMMA: partial(written_number, decimal=","),
    "date": written_day,
}
"""What reads a text as a value of each kind."""


def written_values(texts: Sequence[str], kind: str) -> NDArray[np.float64]:
    """The values of a kind that texts stand for, NaN where they stand for none."""
    if kind in _READERS:
        return np.array([_READERS[kind](text) for text in texts], dtype=np.float64)
    stamps = dates(texts, kind.partition(" ")[2])
    return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / _PER_DAY["us"])


@dataclass(frozen=True, eq=False)
class Columns:
    """Feature columns in Arrow, with the kind of each.

    Attributes:
        table: The feature columns, and the name of their table for messages.
        kinds: The kind of each column, in the order of the table.
        edge_kinds: The kinds of the columns of edges that some columns are made of.
        wide: Features that are mostly 0, beside the columns.
        relations: The kinds of edges that are told apart, if there are several.
    """

    table: Table
    kinds: dict[str, str]
    edge_kinds: dict[str, str] = field(default_factory=dict)
    wide: Wide | None = None
    relations: Relations | None = None
    _levels: dict[str, CodedTexts] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def read(
        cls, table: Table, names: Sequence[str], *, categorical: Sequence[str] = (), numeric: Sequence[str] = ()
    ) -> Columns:
        """Find the kind of each of these columns of a table.

        ``categorical`` are those that are categories, whatever they look like, and ``numeric`` those that are numbers,
        even if they are text.
        """
        columns = cls(Table(table.arrow.select(list(names)), table.name), {})
        for name in names:
            named = "category" if name in categorical else "number" if name in numeric else None
            columns.kinds[name] = columns._kind(name, named)
        columns._look_at_values({*categorical, *numeric})
        return columns

    @classmethod
    def for_kinds(cls, table: Table, kinds: dict[str, str]) -> Columns:
        """The columns that a model was trained with, from another table; they are read as the kinds they had."""
        names = [name for name in kinds if name in table.columns]
        return cls(Table(table.arrow.select(names), table.name), kinds)

    @classmethod
    def of_edges(
        cls,
        table: Table,
        hidden: Collection[str | None],
        *,
        edge_type: str | None,
        categorical: Sequence[str],
        numeric: Sequence[str],
    ) -> Columns:
        """The columns of edges: lists are categories, and free text is not used."""
        if edge_type is not None:
            table.check_column(edge_type, "edge_type")
            categorical = [*categorical, edge_type]
        names = [name for name in table.columns if name not in hidden]
        numeric = [name for name in numeric if name in names]
        columns = cls.read(table, names, categorical=[name for name in categorical if name in names], numeric=numeric)
        kinds = {"list": "category", "text": "id"}
        columns.kinds.update({name: kinds.get(sort_of(kind), kind) for name, kind in columns.kinds.items()})
        return columns

    def take(self, rows: NDArray[np.int64]) -> Columns:
        """Some of the rows."""
        wide = self.wide and self.wide._replace(matrix=self.wide.matrix[rows])
        table = replace(self.table, arrow=self.table.arrow.take(rows))
        return Columns(table, self.kinds, self.edge_kinds, wide, self.relations)

    @property
    def used(self) -> dict[str, str]:
        """The kinds of the columns that become features."""
        return {name: kind for name, kind in self.kinds.items() if is_used(kind)}

    @property
    def left_out(self) -> list[str]:
        """The columns that do not become features."""
        return [name for name, kind in self.kinds.items() if not is_used(kind)]

    def __len__(self) -> int:
        return int(self.table.arrow.num_rows)

    def numbers(self, name: str, kind: str) -> NDArray[np.float64]:
        """The values of a column of this kind (n); see :meth:`matrix`."""
        return self.matrix({name: kind})[:, 0]

    def matrix(self, kinds: Mapping[str, str]) -> NDArray[np.float64]:
        """The values of columns of these kinds (n × k), NaN where they are missing; dates in days since 1970.

        Raises:
            InputError: If a value is not of its kind, or infinite.
        """
        matrix = np.empty((len(self), len(kinds)))
        plain: dict[str, int] = {}
        for place, (name, kind) in enumerate(kinds.items()):
            arrow, is_there = self._column(name).type, name in self.table.columns
            if is_there and sort_of(kind) != "date" and (pa.types.is_integer(arrow) or pa.types.is_floating(arrow)):
                plain[name] = place
            else:
                matrix[:, place] = self._floats(name, kind)
        if plain:  # all at once, as a call of Arrow takes longer than its work on a column of few rows
            matrix[:, list(plain.values())] = self.table.arrow.select(list(plain)).to_pandas().to_numpy(np.float64)
        infinite = np.argwhere(np.isinf(matrix))
        if len(infinite):
            row, column = infinite[0].tolist()
            name = list(kinds)[column]
            where, value = self.table.place_in_row(row, name), self._column(name)[row].as_py()
            raise ColumnError(f"{where} is {value}: a feature must be finite; clip it", "drop", name)
        return matrix

    def levels(self, name: str) -> CodedTexts:
        """The values of a column as text.

        The number 3.0 is the text ``3``, so that a column of codes is the same whether or not some are missing. Text
        is compared as it is.
        """
        if name not in self._levels:
            values = self._column(name)
            if _sort(values.type) is None:
                raise self._wrong(name, values.is_valid(), "category")
            coded = pa.chunked_array(values.dictionary_encode().chunks).combine_chunks()
            texts = coded.dictionary.cast(pa.large_string())
            if _sort(values.type) != "category":
                texts = pc.replace_substring_regex(texts, _WHOLE_AS_FRACTION, r"\1")
            texts = pc.if_else(pc.is_in(texts, value_set=pa.array(MISSING, texts.type)), None, texts)
            distinct = texts.dictionary_encode()
            number = np.append(distinct.indices.fill_null(-1).to_numpy(), -1)
            codes = number[coded.indices.fill_null(-1).to_numpy()].astype(np.int64)
            self._levels[name] = codes, distinct.dictionary
        return self._levels[name]

    def texts(self, name: str) -> list[str | None]:
        """The values of a column as text (n), ``None`` where they are missing."""
        codes, distinct = self.levels(name)
        texts = np.array([*distinct.to_pylist(), None], dtype=object)
        found: list[str | None] = texts[codes].tolist()
        return found

    def example(self, name: str) -> str:
        """One of the first values of a column, as text."""
        values = (str(value) for value in self._column(name)[:100].to_pylist() if value is not None)
        return next((value for value in values if value.strip() not in MISSING), "")

    def is_on_calendar(self, name: str) -> bool:
        """Whether a column holds dates, and not times of day or durations."""
        kind = self._column(name).type
        return sort_of(self.kinds[name]) == "date" and not (pa.types.is_time(kind) or pa.types.is_duration(kind))

    def _floats(self, name: str, kind: str) -> NDArray[np.float64]:
        """The values of a column (n), NaN where they are missing."""
        values = self._column(name)
        sort = _sort(values.type)
        if sort == "category":
            codes, texts = self.levels(name)
            distinct = texts.to_pylist()
            read = np.append(written_values(distinct, kind), math.nan)
            is_missing = np.array([text.strip() in MISSING for text in [*distinct, ""]])
            bad = (np.isnan(read) & ~is_missing)[codes]
            if bad.any():
                raise self._wrong(name, bad, kind)
            return read[codes]
        if sort != ("date" if sort_of(kind) == "date" else "number"):
            raise self._wrong(name, values.is_valid(), kind)
        if sort == "date":
            values = _days(values)
        elif pa.types.is_boolean(values.type):
            values = values.cast(pa.uint8())
        floats: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
        return floats

    def _kind(self, name: str, named: str | None) -> str:
        """The kind that the caller named for a column, else the one that follows from its type."""
        given = self.table.columns[name]
        sort = "category" if pa.types.is_dictionary(given.type) else _sort(given.type)
        if given.null_count == len(given):
            return "empty"
        if sort == "date" and named != "category":
            return "date"
        if named == "number" and sort == "category":
            named = DECIMAL_COMMA if decimal_of(self.levels(name)[1].to_pylist()) == "," else named
            self.numbers(name, named)  # which refuses text that is not a number
        if named is None and sort is None:
            value = repr(given.drop_null()[0].as_py())[:40]
            place = self.table.place(given.is_valid(), name)
            raise ColumnError(f"{place} is {value}: a feature must be a number, a text or a date", "drop", name)
        return named or ("binary" if pa.types.is_boolean(given.type) else str(sort))

    def _look_at_values(self, named: Collection[str]) -> None:
        """Correct the kinds of numbers and texts by their values, except where the caller has named the kind."""
        numbers, texts = (
            [name for name, its_kind in self.kinds.items() if its_kind == kind and name not in named]
            for kind in ("number", "category")
        )
        values = self.matrix(dict.fromkeys(numbers, "number"))
        missing = np.isnan(values)
        for kind, fits in {"binary": missing | (values == 0) | (values == 1), "empty": missing}.items():
            self.kinds.update({numbers[k]: kind for k in np.flatnonzero(fits.all(axis=0))})
        for name, column in zip(numbers, values.T, strict=True):
            self.kinds[name] = left_out_kind(name, column) or self.kinds[name]
        for name in texts:
            codes, distinct = self.levels(name)
            found, known = distinct.to_pylist(), int((codes >= 0).sum())
            # if every program would read all of them as numbers, then whoever stored them as text meant text
            decimal = None if all(map(is_plain_number, found)) else decimal_of(found)
            if decimal is not None:
                self.kinds[name] = "number" if decimal == "." else DECIMAL_COMMA
            elif len(found) == 0:
                self.kinds[name] = "empty"
            elif len(found) == 1 and known == len(codes):
                self.kinds[name] = "constant"
            elif form := date_format(found):
                self.kinds[name] = f"date {form}"
            elif separator := list_separator(found):
                self.kinds[name] = f"list {separator}"
            elif _is_prose(found, codes[codes >= 0]):
                self.kinds[name] = "text"
            elif len(found) == known:
                self.kinds[name] = "id"

    def _column(self, name: str) -> pa.ChunkedArray:
        """A column: categories as the values that they stand for, and one without any value as text."""
        if name not in self.table.columns and self.edge_kinds and is_of_edges(name):
            return pa.chunked_array([pa.nulls(len(self), pa.float64())])  # no edge has this level
        if name not in self.table.columns:
            raise InputError(f"{self.table.name} has no column {name!r}, which the model was trained with: add it")
        column = self.table.columns[name]
        if pa.types.is_dictionary(column.type):
            return column.cast(column.type.value_type)
        return column.cast(pa.large_string()) if pa.types.is_null(column.type) else column

    def _wrong(self, name: str, bad: Any, kind: str) -> InputError:
        """The error about the first bad value of a column."""
        row = int(np.flatnonzero(np.asarray(bad))[0])
        place, value = self.table.place_in_row(row, name), str(self._column(name)[row].as_py())
        return InputError(f"{place} is {value!r}, which is not a {kind}: correct it or leave it empty")


def left_out_kind(name: str, values: NDArray[Any]) -> str | None:
    """Whether a column of numbers says nothing, being ``constant`` or an ``id``."""
    if len(values) < 2 or values.dtype.kind not in "iuf" or np.isnan(values[0]):
        return None
    if (values == values[0]).all():
        return "constant"
    is_id = _ID.fullmatch(name) and (values == np.round(values)).all() and len(np.unique(values)) == len(values)
    return "id" if is_id and len(values) >= LEAST_IDS else None


def _is_prose(distinct: Sequence[str], codes: NDArray[np.int64]) -> bool:
    """Whether the distinct texts that rows have are sentences or mostly rare names, rather than names of levels."""
    counts = np.bincount(codes)
    many = len(distinct) > FEW_LEVELS or 2 * len(distinct) >= len(codes)
    are_sentences = float(np.mean([len(text.split()) for text in distinct])) >= LEAST_WORDS
    are_rare = FEW_LEVELS < len(distinct) < len(codes) and 2 * counts[counts > 2].sum() < len(codes)
    return many and (are_sentences or bool(are_rare))


def _sort(kind: pa.DataType) -> str | None:
    """What kind of feature the values of an Arrow type are; ``None`` for none."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind):
        return "number"
    if types.is_temporal(kind) and not types.is_interval(kind):
        return "date"
    return "category" if types.is_string(kind) or types.is_large_string(kind) else None


def _days(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as days, since 1970 or since midnight; durations as their length in days."""
    kind = values.type
    unit = "D" if pa.types.is_date32(kind) else "ms" if pa.types.is_date64(kind) else kind.unit
    whole = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return pc.divide(whole.cast(pa.float64(), safe=False), float(_PER_DAY[unit]))
