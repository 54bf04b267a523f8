"""Tables from files or memory as Arrow, with their names for messages."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gcnsl.errors import InputError

_TEXT_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""Where pandas keeps the row numbers of a frame whose rows were chosen or moved; no feature of a node."""


@dataclass(frozen=True)
class Table:
    """A table and what to call it."""

    arrow: pa.Table
    name: str

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return list(self.arrow.column_names)

    def column(self, wanted: str | None, argument: str, default: str | None, position: int | None) -> Any:
        """The column that the caller named, else the one of the default name, else the one at a position (or none)."""
        if wanted is not None:
            if wanted not in self.names:
                raise InputError(f"{self.name} has no column {argument}({wanted!r}): it has {', '.join(self.names)}")
            return wanted
        if default in self.names:
            return default
        if position is None:
            return None
        if position >= len(self.names):
            raise InputError(f"{self.name} has {len(self.names)} column(s), too few for {argument}; add or name it")
        return self.names[position]

    def example(self, column: str) -> str:
        """A value of a column, for a message."""
        values = self.arrow[column].drop_null()
        return repr(values[0].as_py()) if len(values) else "nothing"

    def place(self, bad: Any, column: str) -> str:
        """Where the first of the bad entries is, e.g. ``nodes.csv, row 3, column 'age'``."""
        row = int(np.flatnonzero(np.asarray(bad))[0]) + 1
        return f"{self.name}, row {row}, column {column!r}"


def read_table(source: str | os.PathLike[str] | Any, argument: str, *, text: Sequence[tuple[str, int]] = ()) -> Table:
    """Read a table.

    Args:
        source: A path (CSV, TSV, Parquet), a pandas DataFrame or a pyarrow Table.
        argument: What the caller calls it; the table's name where it has no file.
        text: Columns that a text file gives as text even where they look like numbers: an id ``007`` is not the id
            ``7``. Each is the one of a name, or where there is none the one at a position.
    """
    if isinstance(source, pa.Table):
        table = Table(source, argument)
    elif isinstance(source, pd.DataFrame):
        table = Table(_from_pandas(source, argument), argument)
    elif isinstance(source, str | os.PathLike):
        table = Table(_from_file(Path(source), argument, text), str(source))
    else:
        raise InputError(f"{argument} is a {type(source).__name__}: give a path, a pandas DataFrame or a pyarrow Table")
    row_numbers = [name for name in table.names if _ROW_NUMBERS.fullmatch(name)]
    table = Table(table.arrow.drop_columns(row_numbers), table.name)
    repeated = [name for name in table.names if table.names.count(name) > 1]
    if repeated:
        raise InputError(f"{table.name} has several columns {repeated[0]!r}: rename or remove all but one")
    if not table.names:
        raise InputError(f"{table.name} has no columns: give a header line and data")
    return table


def _from_pandas(frame: pd.DataFrame, argument: str) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{argument} can't be read ({error}): give each column values of one type") from error


def _from_file(path: Path, argument: str, text: Sequence[tuple[str, int]]) -> pa.Table:
    if not path.is_file():
        raise InputError(f"{argument}({str(path)!r}): there is no such file")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    try:
        if kind in _PARQUET:
            return pa.parquet.read_table(path, pre_buffer=False)  # a local file is not worth a second copy in memory
        if kind in _TEXT_SEPARATORS:
            return _from_text(path, _TEXT_SEPARATORS[kind], text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} can't be read as a {kind.removeprefix('.')} table: {error}") from error
    known = ", ".join([*_TEXT_SEPARATORS, *_PARQUET])
    raise InputError(f"{argument}({str(path)!r}) is of no known kind: name it {known} (text may end in .gz too)")


def _from_text(path: Path, separator: str, text: Sequence[tuple[str, int]]) -> pa.Table:
    parse = pa.csv.ParseOptions(delimiter=separator)
    with pa.csv.open_csv(path, parse_options=parse) as reader:
        header = [name for name in reader.schema.names if not _ROW_NUMBERS.fullmatch(name)]
    columns = [name if name in header else next(iter(header[position:]), name) for name, position in text]
    convert = pa.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True)
    return pa.csv.read_csv(path, parse_options=parse, convert_options=convert)
