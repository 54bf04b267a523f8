"""Reads tables from files or memory as Arrow, and writes them. Nothing here loads torch."""

import contextlib
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gcnsl.checks import did_you_mean
from gcnsl.errors import ArgumentError, InputError
from gcnsl.files import atomic_write

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
MISSING = tuple(pa.csv.ConvertOptions().null_values)
"""What stands for a missing value in text: nothing, ``NA``, ``N/A``, ``NaN``, ``null`` and their variants."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of a cell that spreadsheets take for a formula."""
_ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Columns in which pandas stores row numbers when rows were selected or reordered; they are not features."""
_PLAIN_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class Table:
    """A table and its name in messages.

    Attributes:
        is_text: Whether it was read from a text file, in which all values are text.
        first_row: The first row of a text file without a header, whose columns have been given names.
    """

    arrow: pa.Table
    name: str
    is_text: bool = False
    first_row: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> dict[str, pa.ChunkedArray]:
        """The columns by name, in order."""
        return dict(zip(self.arrow.column_names, self.arrow.columns, strict=True))

    def check_column(self, name: str, argument: str) -> str:
        """Return the name of a column that the caller gave as ``argument``, if the table has it."""
        if not isinstance(name, str) or name not in self.columns:
            some = ", ".join(islice(self.columns, 10))
            more = f" and {len(self.columns) - 10} more" if len(self.columns) > 10 else ""
            hint = did_you_mean(name, self.columns)
            raise ArgumentError(argument, name, f"is not a column of {self.name}, which has {some}{more}{hint}")
        return name

    def find_column(self, name: str | None, default: str, position: int) -> str:
        """Return the column that the caller named, else the one with the default name, else the one at a position."""
        found = self.find_optional(name, default)
        if found is not None:
            return found
        if position >= len(self.columns):
            raise InputError(f"{self.name} has {len(self.columns)} column(s), too few for {default}; add a column")
        return next(islice(self.columns, position, None))

    def find_optional(self, name: str | None, default: str) -> str | None:
        """Return the column that the caller named, else the one with the default name, else ``None``."""
        if name is not None:
            return self.check_column(name, default)
        return default if default in self.columns else None

    def as_text(self, name: str) -> pd.Series:
        """The values of a column as text, with nothing where they are missing."""
        try:
            return self.columns[name].cast(pa.string()).to_pandas().fillna("")
        except pa.ArrowException as error:
            raise InputError(f"{self.name}: column {name!r} can't be read as strings ({error})") from error

    def place(self, bad: Any, column: str) -> str:
        """Return where the first bad entry is, such as ``nodes.csv, row 3, column 'age'``."""
        return self.place_in_row(int(np.flatnonzero(np.asarray(bad))[0]), column)

    def place_in_row(self, row: int, column: str) -> str:
        """Return the same for a row that is counted from 0."""
        return f"{self.name}, row {row + 1}, column {column!r}"


def read_table(
    source: str | os.PathLike[str] | Any,
    argument: str,
    *,
    text: Sequence[tuple[str, int | None]] = (),
    categories: Sequence[str] = (),
    unnamed: Sequence[str] = (),
    are_ids: Callable[[Sequence[str]], bool] = lambda cells: False,
) -> Table:
    """Read a table from a path (CSV, TSV, Parquet), a pandas DataFrame or a pyarrow Table.

    Args:
        source: The table.
        argument: Name in messages of a table that is not a file.
        text: Columns that are read from a text file as they are written, even if they look like numbers or like a
            missing value: the id ``007`` is not the id ``7``, and the id ``NA`` is one. Each is given by its name and,
            in case there is no such column, by its position.
        categories: Further columns that are read as strings.
        unnamed: The names of the first columns of a text file that has no header, which is one whose first row holds
            numbers only, or the same in two of these columns, or ids.
        are_ids: Whether the first cells of such a row are ids.
    """
    if isinstance(source, pa.Table):
        table = Table(source, argument)
    elif isinstance(source, pd.DataFrame):
        table = Table(_from_pandas(source, argument), argument)
    elif isinstance(source, str | os.PathLike):
        options: dict[str, Any] = {"text": text, "categories": categories, "unnamed": unnamed, "are_ids": are_ids}
        table = replace(_from_file(Path(source), argument, **options), name=str(source))
    else:
        raise InputError(f"{argument} is a {type(source).__name__}: give a path, a pandas DataFrame or a pyarrow Table")
    counts = Counter(table.arrow.column_names)
    repeated = next((column for column, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"{table.name} has several columns {repeated!r}: rename or remove all but one")
    arrow = table.arrow.drop_columns([column for column in counts if _ROW_NUMBERS.fullmatch(column)])
    if not arrow.num_columns:
        raise InputError(f"{table.name} has no columns: give a header line and data")
    return replace(table, arrow=arrow)


def read_head(path: Path, argument: str, *, unnamed: Sequence[str] = ()) -> Table:
    """The first rows of a file, for its columns. What is wrong with a file is told as by :func:`read_table`."""
    try:
        if _suffix(path) in PARQUET:
            file = pa.parquet.ParquetFile(path)
            arrow = pa.Table.from_batches(islice(file.iter_batches(1), 1), file.schema_arrow)
        else:
            reader = pa.csv.open_csv(path, parse_options=_parse_options(SEPARATORS[_suffix(path)]))
            arrow = pa.Table.from_batches(islice(reader, 1), reader.schema)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return read_table(path, argument, unnamed=unnamed)
    names = arrow.column_names
    return Table(arrow, str(path)) if 0 < len(names) == len(set(names)) else read_table(path, argument, unnamed=unnamed)


def _from_pandas(frame: pd.DataFrame, argument: str) -> pa.Table:
    """Convert column by column: with many columns, ``Table.from_pandas`` spends most of its time on metadata."""
    names = [str(name) for name in frame.columns]
    columns: list[pa.Array] = []
    try:
        columns.extend(pa.array(series, from_pandas=True) for _, series in frame.items())
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        place = f"{argument}, column {names[len(columns)]!r}"
        raise InputError(f"{place} can't be read ({error}): give it values of one type") from error
    return pa.Table.from_arrays(columns, names=names)


def _from_file(path: Path, argument: str, **options: Any) -> Table:
    """Read a file; the options are those of :func:`read_table` for text files."""
    if not path.is_file():
        raise ArgumentError(argument, str(path), "does not exist: give the path of a table")
    kind = _suffix(path)
    try:
        if kind in PARQUET:  # of a local file, a buffer only takes memory
            return Table(pa.parquet.read_table(path, pre_buffer=False), argument)
        if kind in SEPARATORS:
            return _from_text(path, SEPARATORS[kind], **options)
    except (pa.ArrowException, OSError, ValueError, csv.Error) as error:
        why = _uneven_row(path, SEPARATORS[kind]) if kind in SEPARATORS else None
        raise InputError(f"{path} can't be read as a {kind.removeprefix('.')} table: {why or error}") from error
    known = ", ".join([*SEPARATORS, *PARQUET])
    raise ArgumentError(argument, str(path), f"must end in one of {known} (text files also in .gz)")


def _suffix(path: Path) -> str:
    """The end of a file's name that tells its format."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _parse_options(separator: str, **options: Any) -> pa.csv.ParseOptions:
    return pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, **options)


def _uneven_row(path: Path, separator: str) -> str | None:
    """What is wrong with the first row that has more or fewer cells than the header, counted as messages count rows."""
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append(row)
        return "error"

    read = pa.csv.ReadOptions(use_threads=False, encoding="latin-1")  # in which every byte is a character
    with contextlib.suppress(pa.ArrowException, OSError):
        pa.csv.read_csv(path, read_options=read, parse_options=_parse_options(separator, invalid_row_handler=note))
    if not found:
        return None
    row = found[0]  # Arrow counts the header, too
    cells = f"{row.actual_columns} instead of {row.expected_columns} cells"
    return f"row {row.number - 1} has {cells}; correct it, or put text with a separator in quotes"


def _from_text(
    path: Path,
    separator: str,
    *,
    text: Sequence[tuple[str, int | None]],
    categories: Sequence[str],
    unnamed: Sequence[str],
    are_ids: Callable[[Sequence[str]], bool],
) -> Table:
    with io.TextIOWrapper(io.BufferedReader(pa.input_stream(path)), encoding="utf-8-sig", newline="") as file:
        names = next(filter(None, csv.reader(file, delimiter=separator)), [])
    first_row: tuple[str, ...] = ()
    if unnamed and _is_data(names, unnamed, are_ids):
        first_row = tuple(names)
        names = [*unnamed, *(f"column {k + 1}" for k in range(len(unnamed), len(names)))][: len(names)]
    given = [name for name in names if not _ROW_NUMBERS.fullmatch(name)]
    verbatim = [
        name if name in given or position is None else next(iter(given[position:]), name)
        for name, position in text
        if isinstance(name, str)  # others are refused when the column is looked for
    ]
    read = partial(
        pa.csv.read_csv,
        path,
        parse_options=_parse_options(separator),
        read_options=pa.csv.ReadOptions(column_names=names if first_row else None),
    )
    types = dict.fromkeys([*verbatim, *categories], pa.string())
    convert = partial(pa.csv.ConvertOptions, column_types=types, strings_can_be_null=True)
    try:
        arrow = read(convert_options=convert())
    except pa.ArrowInvalid as error:
        if not names or "Empty CSV file" not in str(error):
            raise
        return Table(pa.table({name: pa.nulls(0) for name in names}), str(path), is_text=True)  # a header alone
    # An id or a label may be called NA. Arrow has one list of missing values for all columns, so it reads them again.
    again = [name for name in dict.fromkeys(verbatim) if names.count(name) == 1 and arrow[name].null_count]
    if again:
        as_written = read(convert_options=convert(include_columns=again, null_values=[""]))
        for name in again:
            arrow = arrow.set_column(names.index(name), name, as_written[name])
    return Table(arrow, str(path), is_text=True, first_row=first_row)


def _is_data(cells: Sequence[str], unnamed: Sequence[str], are_ids: Callable[[Sequence[str]], bool]) -> bool:
    """Whether a first row is data and no header."""
    first = cells[: len(unnamed)]
    repeats = len(set(first)) < len(first)
    return bool(cells) and (
        repeats or all(map(is_plain_number, cells)) or (set(unnamed).isdisjoint(first) and are_ids(first))
    )


def is_plain_number(text: str) -> bool:
    """Whether every program reads the text as a number."""
    return _PLAIN_NUMBER.fullmatch(text) is not None


def check_table(path: str | os.PathLike[str]) -> Path:
    """Return the path of a table to be written, if its ending is known."""
    kinds = (*SEPARATORS, *PARQUET)
    if Path(path).suffix.lower() not in kinds:
        raise ArgumentError("output", os.fspath(path), f"must end in one of {', '.join(kinds)}")
    return Path(path)


def write_table(table: pa.Table, path: str | os.PathLike[str], *, for_spreadsheet: bool = False) -> None:
    """Write a table in the format that the ending of the path names; an existing file is replaced as a whole.

    Lists are written as text with ``|`` between their parts, except into Parquet. ``for_spreadsheet`` puts an
    apostrophe before text that begins with one of :data:`FORMULA_STARTS`: a spreadsheet would take it for a formula and
    compute it.
    """
    path = check_table(path)
    kind = path.suffix.lower()
    if kind in SEPARATORS:
        table = pa.table([_joined(column) for column in table.columns], names=table.column_names)
    if for_spreadsheet:
        names = [_no_formula(name) for name in table.column_names]
        table = pa.table([_no_formulas(column) for column in table.columns], names=names)
    if kind in SEPARATORS:
        atomic_write(path, table.to_pandas().to_csv(sep=SEPARATORS[kind], index=False, lineterminator="\n"))
    else:
        content = io.BytesIO()
        pa.parquet.write_table(table, content)
        atomic_write(path, content.getvalue())


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if not pa.types.is_list(column.type):
        return column
    return pa.array(["|".join(map(str, parts)) for parts in column.to_pylist()], pa.string())


def _no_formulas(column: pa.ChunkedArray) -> pa.Array:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    return pa.array([None if cell is None else _no_formula(cell) for cell in column.to_pylist()], column.type)


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
