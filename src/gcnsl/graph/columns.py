"""The feature columns of a table, as they were read, and what kind of values each holds.

The kind of a column follows from its type and its values, or from its name in ``categorical`` or ``numeric``:

- ``number``: integers, decimals and fractions, also in text as people write them: ``1,234``, ``45.3%``, ``$5.00``.
- ``number, decimal comma``: text such as ``1.234,5``.
- ``binary``: booleans, and numbers that are all 0 or 1.
- ``category``: text, and the categories of pandas and Arrow.
- ``date``: dates, timestamps, times of day and durations, all of which become a number of days.
- ``id`` and ``constant``: text that is different in every row, or the same in every row. It is left out.
- ``empty``: no value at all. It is left out.

A value is missing if it is ``None``, NaN, or one of the texts in :data:`gcnsl.graph.table_reading.MISSING`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import ColumnError, InputError
from gcnsl.graph.column_blocks import Block, blocks_of
from gcnsl.graph.table_reading import MISSING, Table
from gcnsl.graph.written_numbers import Decimal, decimal_of, is_plain, written_number

DECIMAL_COMMA = "number, decimal comma"
QUANTITIES = ("number", DECIMAL_COMMA, "date")
USED = (*QUANTITIES, "binary", "category")
"""The kinds that become features."""

_PER_DAY = {unit: 86_400 * factor for unit, factor in {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.items()}
_WHOLE_AS_FRACTION = r"^(-?\d+)\.0+$"

CodedTexts = tuple[NDArray[np.int64], pa.Array]
"""Which of the distinct texts each row has (n; -1 if missing), and the texts."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Feature columns in Arrow, with the kind of each.

    Attributes:
        table: The feature columns, and the name of their table for messages.
        kinds: The kind of each column, in the order of the table.
    """

    table: Table
    kinds: dict[str, str]
    _levels: dict[str, CodedTexts] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def read(
        cls, table: Table, names: Sequence[str], *, categorical: Sequence[str] = (), numeric: Sequence[str] = ()
    ) -> Columns:
        """Find the kind of each of these columns.

        Args:
            table: The whole table of nodes.
            names: Its feature columns.
            categorical: Those that are categories, whatever they look like.
            numeric: Those that are numbers, even if they are text.
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

    @property
    def used(self) -> dict[str, str]:
        """The kinds of the columns that become features."""
        return {name: kind for name, kind in self.kinds.items() if kind in USED}

    @property
    def left_out(self) -> list[str]:
        """The columns that do not become features."""
        return [name for name, kind in self.kinds.items() if kind not in USED]

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
        places = {name: k for k, name in enumerate(kinds)}
        matrix = np.empty((len(self), len(kinds)))
        for kind in dict.fromkeys(kinds.values()):
            for block in self._blocks(name for name, its_kind in kinds.items() if its_kind == kind):
                values = self._floats(block, kind)
                infinite = np.isinf(values)
                if infinite.any():
                    name, row = block.first(infinite)
                    place, value = self.table.place_in_row(row, name), self._column(name)[row].as_py()
                    raise ColumnError(f"{place} is {value}: a feature must be finite; clip it", "drop", name)
                matrix[:, [places[name] for name in block.names]] = values.reshape(len(block.names), -1).T
        return matrix

    def levels(self, name: str) -> CodedTexts:
        """The values of a column as text; see :meth:`all_levels`."""
        return self.all_levels([name])[name]

    def all_levels(self, names: Iterable[str]) -> dict[str, CodedTexts]:
        """The values of columns as text, by name.

        The number 3.0 is the text ``3``, so that a column of codes is the same whether or not some are missing. Text
        is compared as it is.
        """
        names = list(names)
        for block in self._blocks(name for name in names if name not in self._levels):
            self._levels.update(self._find_levels(block))
        return {name: self._levels[name] for name in names}

    def _blocks(self, names: Iterable[str]) -> Iterator[Block]:
        return blocks_of({name: self._column(name) for name in names})

    def _floats(self, block: Block, kind: str) -> NDArray[np.float64]:
        """The values of a block (k · n), NaN where they are missing."""
        values = block.values
        if _is_string(values.type):
            values = self._parsed(block, kind)
        if not (_is_date if kind == "date" else _is_number)(values.type):
            raise self._wrong(block, values.is_valid(), kind)
        if kind == "date":
            values = _days(values)
        elif pa.types.is_boolean(values.type):
            values = values.cast(pa.uint8())
        floats: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
        return floats

    def _find_levels(self, block: Block) -> Iterator[tuple[str, CodedTexts]]:
        values = block.values
        if not any(is_kind(values.type) for is_kind in (_is_string, _is_number, _is_date)):
            raise self._wrong(block, values.is_valid(), "category")
        coded = pa.chunked_array(values.dictionary_encode().chunks).combine_chunks()
        texts = coded.dictionary.cast(pa.large_string())
        if not _is_string(values.type):
            texts = pc.replace_substring_regex(texts, _WHOLE_AS_FRACTION, r"\1")
        distinct = _known(texts).dictionary_encode()
        number = np.append(distinct.indices.fill_null(-1).to_numpy(), -1)
        codes = number[coded.indices.fill_null(-1).to_numpy()].astype(np.int64)
        if len(block.names) == 1:
            yield block.names[0], (codes, distinct.dictionary)
            return
        for name, own in zip(block.names, codes.reshape(len(block.names), -1), strict=True):
            present, place = np.unique(np.append(-1, own), return_inverse=True)
            yield name, (place[1:].astype(np.int64) - 1, distinct.dictionary.take(pa.array(present[1:])))

    def _kind(self, name: str, named: str | None) -> str:
        """The kind that the caller named for a column, else the one that follows from its type."""
        column = self._column(name)
        if column.null_count == len(column):
            return "empty"
        if _is_date(column.type) and named != "category":
            return "date"
        if named == "number" and is_text(column.type):
            named = {",": DECIMAL_COMMA}.get(decimal_of(self.levels(name)[1].to_pylist()) or "", named)
            self.numbers(name, named)  # which refuses text that is not a number
        if named is not None:
            return named
        if _is_number(column.type):
            return "binary" if pa.types.is_boolean(column.type) else "number"
        if not is_text(column.type):
            value = repr(column.drop_null()[0].as_py())[:40]
            place = self.table.place(column.is_valid(), name)
            raise ColumnError(f"{place} is {value}: a feature must be a number, a text or a date", "drop", name)
        return "category"

    def _look_at_values(self, named: Collection[str]) -> None:
        """Correct the kinds of numbers and texts by their values, except where the caller has named the kind."""
        numbers, texts = (
            [name for name, its_kind in self.kinds.items() if its_kind == kind and name not in named]
            for kind in ("number", "category")
        )
        for block in self._blocks(numbers):
            values = self._floats(block, "number").reshape(len(block.names), -1)
            missing = np.isnan(values)
            for kind, fits in {"binary": missing | (values == 0) | (values == 1), "empty": missing}.items():
                self.kinds.update({block.names[k]: kind for k in np.flatnonzero(fits.all(axis=1))})
        for name, (codes, found) in self.all_levels(texts).items():
            known = int((codes >= 0).sum())
            decimal = _decimal(found.to_pylist())
            if decimal is not None:
                self.kinds[name] = "number" if decimal == "." else DECIMAL_COMMA
            elif len(found) == 0:
                self.kinds[name] = "empty"
            elif len(found) == 1 and known == len(codes):
                self.kinds[name] = "constant"
            elif len(found) == known:
                self.kinds[name] = "id"

    def _column(self, name: str) -> pa.ChunkedArray:
        if name not in self.table.columns:
            raise InputError(f"{self.table.name} has no column {name!r}, which the model was trained with: add it")
        return self.table.columns[name]

    def _parsed(self, block: Block, kind: str) -> pa.Array | pa.ChunkedArray:
        """Read text as values of a kind."""
        texts, wanted = _known(pc.utf8_trim_whitespace(block.values)), pa.timestamp("us")
        if kind != "date":
            coded = pa.chunked_array(texts.dictionary_encode().chunks).combine_chunks()
            decimal: Decimal = "," if kind == DECIMAL_COMMA else "."
            numbers = [written_number(text, decimal) for text in coded.dictionary.to_pylist()]
            values = np.array([*numbers, np.nan], dtype=np.float64)[coded.indices.fill_null(-1).to_numpy()]
            bad = np.isnan(values) & texts.is_valid().to_numpy()
            if bad.any():
                raise self._wrong(block, bad, kind)
            return pa.array(values)
        try:
            return texts.cast(wanted)
        except pa.ArrowInvalid:
            raise self._wrong(block, [not _can_be(text, wanted) for text in texts.to_pylist()], kind) from None

    def _wrong(self, block: Block, bad: Any, kind: str) -> InputError:
        name, row = block.first(bad)
        place, value = self.table.place_in_row(row, name), str(self._column(name)[row].as_py())
        return InputError(f"{place} is {value!r}, which is not a {kind}: correct it or leave it empty")


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text, or categories of any type."""
    return _is_string(kind) or bool(pa.types.is_dictionary(kind))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _days(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as days, since 1970 or since midnight; durations as their length in days."""
    kind = values.type
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()).cast(pa.float64())
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    whole = values.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
    return pc.divide(whole.cast(pa.float64(), safe=False), float(_PER_DAY[unit]))


def _known(texts: Any) -> Any:
    """The texts, with those that stand for a missing value as null."""
    return pc.if_else(pc.is_in(texts, value_set=pa.array(MISSING, texts.type)), None, texts)


def _decimal(texts: Sequence[str]) -> str | None:
    """How decimals are written in a column of text that is one of numbers; ``None`` if it is not.

    If every program would read all of them as numbers, then whoever stored them as text meant text.
    """
    return None if all(map(is_plain, texts)) else decimal_of(texts)


def _can_be(text: str | None, wanted: pa.DataType) -> bool:
    try:
        pa.scalar(text).cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True
