"""Reads tables from files or memory as Arrow, and writes them. Nothing here loads torch.

What a text file does not say of itself is guessed from its first lines: the encoding, what separates the cells, and
whether there is a header. A guess that the ending of the file does not imply is one of the ``notes`` of the table.
"""

import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet

from gcnsl.checks import did_you_mean
from gcnsl.errors import ArgumentError, InputError
from gcnsl.files import BAD_ZIP, atomic_write

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TEXT = (*SEPARATORS, ".tab", ".txt", ".dat", ".edges", ".edgelist", "")
PARQUET, FEATHER, JSON = (".parquet", ".pq"), (".feather", ".arrow"), (".jsonl", ".ndjson", ".json")
PACKED: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open, ".zip": zipfile.ZipFile}
ENDS = (
    *(("source", "target"), ("from", "to"), ("src", "dst"), ("~from", "~to"), ("node1", "node2"), ("u", "v")),
    *((":START_ID", ":END_ID"), ("source_id", "target_id"), ("from_id", "to_id")),
)
"""The names by which the columns with the ends of the edges are known; else they are the first two columns."""
IDS = ("id", "~id", ":ID", "node_id", "nodeId", "node")
"""The names by which the column with the ids of the nodes is known; else it is the first one."""
MISSING = tuple(pa.csv.ConvertOptions().null_values)
"""What stands for a missing value in text: nothing, ``NA``, ``N/A``, ``NaN``, ``null`` and their variants."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of a cell that spreadsheets take for a formula."""
_IN_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
_HEAD, ALIKE = 2**18, 0.9
"""So many bytes tell how a text file is written; so many of its first lines have as many cells as the header."""
_ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Columns in which pandas stores row numbers when rows were selected or reordered; they are not features."""
_CODE = re.compile(r"0\d+")
"""A whole number that starts with 0: a zip code, say, which is text."""
_PLAIN_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


class Written(NamedTuple):
    """How text files are written; what is ``None`` is guessed."""

    separator: str | None = None
    encoding: str | None = None
    no_header: str | None = None
    """Which tables have no header: ``nodes``, ``edges``, ``both`` or ``none``."""


GUESSED = Written()


@dataclass(frozen=True)
class Table:
    """A table and its name in messages.

    Attributes:
        is_text: Whether it was read from a text file, in which all values are text.
        notes: What was guessed about the file.
    """

    arrow: pa.Table
    name: str
    is_text: bool = False
    notes: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> dict[str, pa.ChunkedArray]:
        """The columns by name, in order."""
        return dict(zip(self.arrow.column_names, self.arrow.columns, strict=True))

    def check_column(self, name: Any, argument: str) -> str:
        """Return the name of a column that the caller gave as ``argument``, if the table has it."""
        if not isinstance(name, str) or name not in self.columns:
            some = ", ".join(islice(self.columns, 10))
            more = f" and {len(self.columns) - 10} more" if len(self.columns) > 10 else ""
            hint = did_you_mean(name, self.columns)
            raise ArgumentError(argument, name, f"is not a column of {self.name}, which has {some}{more}{hint}")
        return name

    def find_optional(self, name: str | None, default: str) -> str | None:
        """Return the column that the caller named, else the one with the default name, else ``None``."""
        if name is not None:
            return self.check_column(name, default)
        return default if default in self.columns else None

    def find_label(self, name: Any) -> str | None:
        """Return the column with the classes that the caller named, else ``label``, else ``None``."""
        parts = list(name) if isinstance(name, list | tuple) else str(name).split(",")
        if len(parts) > 1 and name not in self.columns and all(part in self.columns for part in parts):
            rule = "names several columns, and a model finds one class for each node: train a model for each of them"
            raise ArgumentError("label", name if isinstance(name, str) else ",".join(parts), rule)
        return self.find_optional(name, "label")

    def with_columns(self, columns: Mapping[str, pa.Array]) -> "Table":
        """The table with further columns."""
        arrow = self.arrow
        for name, values in columns.items():
            arrow = arrow.append_column(name, values)
        return replace(self, arrow=arrow)

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
    text: Callable[[Sequence[str]], Sequence[str]] = lambda names: (),
    unnamed: Sequence[str] = (),
    are_ids: Callable[[Sequence[str]], bool] | None = None,
    written: Written = GUESSED,
    head: bool = False,
) -> Table:
    """Read a table from a file, or one of pandas, polars or pyarrow.

    Args:
        source: The table.
        argument: Name in messages of a table that is not a file.
        text: Given the names of all columns, those that are read from a text file as they are written, even if they
            look like numbers or like a missing value: the id ``007`` is not the id ``7``, and the id ``NA`` is one.
        unnamed: The names of the first columns of a text file that has no header.
        are_ids: Whether the first cells of a row are ids, for a table of edges: such a row is no header.
        written: How a text file is written.
        head: Whether the first rows will do, of a large file.
    """
    if isinstance(source, pa.Table):
        table = Table(source, argument)
    elif isinstance(source, pd.DataFrame):
        table = Table(_from_pandas(source, argument), argument)
    elif hasattr(source, "to_arrow"):
        table = Table(source.to_arrow(), argument)
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            hint = did_you_mean(path.name, [each.name for each in path.parent.glob("*")])
            raise ArgumentError(argument, str(path), f"does not exist: give the path of a table{hint}")
        reader = partial(_from_text, argument=argument, text=text, unnamed=unnamed, are_ids=are_ids, written=written)
        try:
            table = _from_file(path, argument, reader, head=head)
        except InputError:
            if not head:
                raise
            table = _from_file(path, argument, reader, head=False)  # which tells what is wrong
    else:
        raise InputError(
            f"{argument} is a {type(source).__name__}: give a path, or a table of pandas, polars or pyarrow"
        )
    counts = Counter(table.arrow.column_names)
    repeated = next((column for column, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise InputError(f"{table.name} has several columns {repeated!r}: rename or remove all but one")
    arrow = table.arrow.drop_columns([column for column in counts if _ROW_NUMBERS.fullmatch(column)])
    if not arrow.num_columns:
        raise InputError(f"{table.name} has no columns: give a header line and data")
    return replace(table, arrow=_flat(arrow))


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


def _flat(table: pa.Table) -> pa.Table:
    """The table with lists of values as JSON, so that their tokens are found as those of written lists."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            texts = [None if cell is None else json.dumps(cell, default=str) for cell in table[place].to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.large_string()))
    return table


def _from_file(path: Path, argument: str, from_text: Callable[[bytes, Path], Table], *, head: bool) -> Table:
    kind = kind_of(path)
    try:
        if kind in PARQUET:
            if head:
                file = pa.parquet.ParquetFile(path)
                return Table(pa.Table.from_batches(islice(file.iter_batches(1), 1), file.schema_arrow), str(path))
            return Table(pa.parquet.read_table(path, pre_buffer=False), str(path))  # a buffer only takes memory
        if kind in FEATHER:
            return Table(pa.feather.read_table(path), str(path))
        if kind in (*TEXT, *JSON):
            content = unpacked(path, _HEAD if head else -1)
            content = content[: content.rfind(b"\n") + 1] if head and len(content) == _HEAD else content
            return from_text(content, path) if kind in TEXT else Table(_from_json(content), str(path))
    except (pa.ArrowException, *BAD_ZIP, lzma.LZMAError, EOFError, OSError, ValueError, csv.Error) as error:
        what = kind.removeprefix(".") or "text"
        raise InputError(f"{path} can't be read as a {what} table: {error}") from error
    known = ", ".join(filter(None, [*TEXT, *PARQUET, *FEATHER, *JSON]))
    raise ArgumentError(argument, str(path), f"must end in one of {known} (text also packed: {', '.join(PACKED)})")


def kind_of(path: Path) -> str:
    """The end of a file's name that tells its format."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in PACKED]
    return suffixes[-1] if suffixes else ""


def unpacked(path: Path, most: int = -1) -> bytes:
    """The first bytes of a file, all of them by default, unpacked if its ending says that it is packed."""
    opened = PACKED.get(path.suffix.lower(), open)(path, "r" if path.suffix.lower() in PACKED else "rb")
    with opened as file:
        if not isinstance(file, zipfile.ZipFile):
            content: bytes = file.read(most)
            return content
        names = [name for name in file.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
        if len(names) != 1:
            raise ValueError(f"it holds {len(names)} files; unpack it and name one")
        return file.open(names[0]).read(most)


def _from_json(content: bytes) -> pa.Table:
    """One object a line, or an array of objects."""
    if content.lstrip()[:1] == b"[":
        return pa.Table.from_pylist(json.loads(content))
    return pa.json.read_json(pa.BufferReader(content))


def _from_text(
    content: bytes,
    path: Path,
    argument: str,
    *,
    text: Callable[[Sequence[str]], Sequence[str]],
    unnamed: Sequence[str],
    are_ids: Callable[[Sequence[str]], bool] | None,
    written: Written,
) -> Table:
    notes = []
    content, encoding = _as_utf8(content, written.encoding)
    if encoding != written.encoding:
        notes.append(f"{path} is not UTF-8: it is read as {encoding} (--encoding names another)")
    content, comments = _without_comments(content, path)
    if comments:
        notes.append(f"{path}: the first {comments} lines are comments")
    start = content[:_HEAD].decode(errors="replace")
    usual = SEPARATORS.get(kind_of(path))
    lines = [line for line in islice(io.StringIO(start), 100) if line.strip()]
    separator = written.separator or _separator(lines, usual)
    if separator != (written.separator or usual):
        notes.append(
            f"{path}: cells are taken to be separated by {_IN_WORDS[separator]} (--sep names another separator)"
        )
    if separator == " ":
        content = re.sub(rb"[ \t]+", b" ", re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", content))
        start = content[:_HEAD].decode(errors="replace")
    head = list(islice(filter(None, csv.reader(io.StringIO(start, newline=""), delimiter=separator)), 1000))
    names = head[0] if head else []
    if written.no_header is None:
        has_header = not (_is_edge(names, unnamed, are_ids) if are_ids else _is_row(head[:20]))
    else:
        has_header = written.no_header not in (argument, "both")
    if not has_header:
        cells = ", ".join(names[:5])
        notes += [] if written.no_header else [f"{path} has no header: its first row, {cells}, is taken for data"]
        names = [*unnamed, *(f"column {k + 1}" for k in range(len(unnamed), len(names)))][: len(names)]
    parse = partial(pa.csv.ParseOptions, delimiter=separator, newlines_in_values=b'"' in content)
    read = partial(
        pa.csv.read_csv,
        parse_options=parse(),
        read_options=pa.csv.ReadOptions(column_names=None if has_header else names),
    )
    given = [name for name in names if not _ROW_NUMBERS.fullmatch(name)]
    coded = [name for name, *cells in zip(names, *head[1:], strict=False) if any(map(_CODE.fullmatch, cells))]
    verbatim = [name for name in dict.fromkeys([*text(given), *coded]) if names.count(name) == 1]
    convert = partial(
        pa.csv.ConvertOptions, column_types=dict.fromkeys(verbatim, pa.string()), strings_can_be_null=True
    )
    try:
        arrow = read(pa.BufferReader(content), convert_options=convert())
    except pa.ArrowInvalid as error:
        if names and "Empty CSV file" in str(error):
            return Table(pa.table({name: pa.nulls(0) for name in names}), str(path), is_text=True)  # a header alone
        raise InputError(
            f"{path} can't be read as a {kind_of(path)[1:] or 'text'} table: {_uneven_row(content, parse) or error}"
        ) from error
    # An id or a label may be called NA. Arrow has one list of missing values for all columns, so it reads them again.
    again = [name for name in verbatim if arrow[name].null_count]
    if again:
        as_written = read(pa.BufferReader(content), convert_options=convert(include_columns=again, null_values=[""]))
        for name in again:
            arrow = arrow.set_column(names.index(name), name, as_written[name])
    return Table(arrow, str(path), is_text=True, notes=tuple(notes))


def _as_utf8(content: bytes, encoding: str | None) -> tuple[bytes, str | None]:
    """The content in UTF-8 without a mark at its beginning, and the encoding that it had, if that is not UTF-8."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    guesses = ["utf-16"] * content.startswith((b"\xff\xfe", b"\xfe\xff")) + ["utf-8", "cp1252", "latin-1"]
    for guess in guesses if encoding is None else [encoding]:
        try:
            decoded = content.decode(guess)
        except UnicodeDecodeError:
            continue
        except LookupError as error:
            raise ArgumentError("encoding", encoding, "is not known: give one of Python's, such as cp1252") from error
        return (content, encoding) if guess == "utf-8" else (decoded.encode(), guess)
    raise ArgumentError("encoding", encoding, "does not fit the file: leave it out, or give another")


def _without_comments(content: bytes, path: Path) -> tuple[bytes, int]:
    """The content after the lines at its beginning that start with # or %, and their number.

    In a CSV or TSV file, such a line with as many cells as the next is the header.
    """
    start, count = 0, 0
    while content[start : start + 1] in (b"#", b"%"):
        end = content.find(b"\n", start) + 1 or len(content)
        separator = SEPARATORS.get(kind_of(path), "\0").encode()
        if 0 < content.count(separator, start, end) == content.count(separator, end, content.find(b"\n", end)):
            return content[start + 1 :].lstrip(b" "), count
        start, count = end, count + 1
    return content[start:], count


def _separator(lines: Sequence[str], usual: str | None) -> str:
    """What separates the cells of these lines: the usual separator if the first line has it, else what all have."""
    if usual and lines and len(next(csv.reader(lines[:1], delimiter=usual))) > 1:
        return usual
    for separator in _IN_WORDS if lines else ():
        counts = [len(line.split()) if separator == " " else line.count(separator) + 1 for line in lines]
        if counts[0] > 1 and counts.count(counts[0]) >= ALIKE * len(lines):
            return separator
    return usual or ","


def _is_edge(cells: Sequence[str], unnamed: Sequence[str], are_ids: Callable[[Sequence[str]], bool]) -> bool:
    """Whether the first row of a table of edges is an edge and no header."""
    first = cells[: len(unnamed)]
    repeats = len(set(first)) < len(first)
    return bool(cells) and (
        repeats or all(map(is_plain_number, cells)) or (set(unnamed).isdisjoint(first) and are_ids(first))
    )


def _is_row(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of these rows of nodes is data: it has numbers where the others have, and not 0, 1, 2, ..."""
    if len(rows) < 3 or any(len(row) != len(rows[0]) for row in rows):
        return False
    numbers = [[is_plain_number(cell) for cell in row] for row in rows]
    first = [float(cell) for cell in rows[0] if is_plain_number(cell)]
    counts_up = all(later - earlier == 1 for earlier, later in pairwise(first))
    alike = all(any(others) == one for one, *others in zip(*numbers, strict=True))
    return bool(first) and alike and not (counts_up and (len(first) > 1 or first[0] == 0))


def is_plain_number(text: str) -> bool:
    """Whether every program reads the text as a number."""
    return _PLAIN_NUMBER.fullmatch(text) is not None


def _uneven_row(content: bytes, parse: Callable[..., pa.csv.ParseOptions]) -> str | None:
    """What is wrong with the first row that has more or fewer cells than the header, counted as messages count rows."""
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append(row)
        return "error"

    with contextlib.suppress(pa.ArrowException):
        read = pa.csv.ReadOptions(use_threads=False)
        pa.csv.read_csv(pa.BufferReader(content), read_options=read, parse_options=parse(invalid_row_handler=note))
    if not found:
        return None
    row = found[0]  # Arrow counts the header, too
    cells = f"{row.actual_columns} instead of {row.expected_columns} cells"
    return f"row {row.number - 1} has {cells}; correct it, or put text with a separator in quotes"


def end_columns(names: Sequence[str], source: str | None, target: str | None) -> tuple[str, str] | None:
    """The columns with the ends of the edges; ``None`` if there are too few."""
    lower = {name.lower(): name for name in reversed(names)}
    known = ((lower[u.lower()], lower[v.lower()]) for u, v in ENDS if {u.lower(), v.lower()} <= lower.keys())
    first, second = next(known, (*names[:2], None, None)[:2])
    first, second = source or first, target or second
    return None if first is None or second is None else (first, second)


def check_ends(table: Table, source: str | None, target: str | None) -> tuple[str, str]:
    """The columns with the ends of the edges of a table."""
    for name, argument in ((source, "source"), (target, "target")):
        if name is not None:
            table.check_column(name, argument)
    columns = end_columns(list(table.columns), source, target)
    if columns is None:
        raise InputError(f"{table.name} has {len(table.columns)} column(s), too few for target; add a column")
    if columns[0] == columns[1]:
        raise InputError(f"{table.name}: source and target are both {columns[0]!r}; name two columns")
    return columns


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
