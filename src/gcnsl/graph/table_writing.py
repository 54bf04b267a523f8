"""Writes tables to CSV, TSV or Parquet files."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from gcnsl.errors import ArgumentError
from gcnsl.files import atomic_write
from gcnsl.graph.table_reading import PARQUET, SEPARATORS

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of a cell that spreadsheets take for a formula."""


def check_table(path: str | os.PathLike[str]) -> Path:
    """Return the path of a table to be written, if its ending is known."""
    kinds = (*SEPARATORS, *PARQUET)
    if Path(path).suffix.lower() not in kinds:
        raise ArgumentError("output", os.fspath(path), f"must end in one of {', '.join(kinds)}")
    return Path(path)


def write_table(table: pa.Table, path: str | os.PathLike[str], *, for_spreadsheet: bool = False) -> None:
    """Write a table in the format that the ending of the path names; an existing file is replaced as a whole.

    ``for_spreadsheet`` puts an apostrophe before text that begins with one of :data:`FORMULA_STARTS`: a spreadsheet
    would take it for a formula and compute it.
    """
    path = check_table(path)
    if for_spreadsheet:
        names = [_as_text(name) for name in table.column_names]
        table = pa.table([_as_texts(column) for column in table.columns], names=names)
    kind = path.suffix.lower()
    if kind in SEPARATORS:
        atomic_write(path, table.to_pandas().to_csv(sep=SEPARATORS[kind], index=False, lineterminator="\n"))
    else:
        content = io.BytesIO()
        pa.parquet.write_table(table, content)
        atomic_write(path, content.getvalue())


def _as_texts(column: pa.ChunkedArray) -> pa.Array:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text:
        return column
    return pa.array([None if cell is None else _as_text(cell) for cell in column.to_pylist()], column.type)


def _as_text(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
