"""Writes tables to CSV, TSV or Parquet files."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from gcnsl.errors import ArgumentError
from gcnsl.files import atomic_write
from gcnsl.graph.table_reading import PARQUET, SEPARATORS


def check_table(path: str | os.PathLike[str]) -> Path:
    """Return the path of a table to be written, if its ending is known."""
    kinds = (*SEPARATORS, *PARQUET)
    if Path(path).suffix.lower() not in kinds:
        raise ArgumentError("output", os.fspath(path), f"must end in one of {', '.join(kinds)}")
    return Path(path)


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table in the format that the ending of the path names; an existing file is replaced as a whole."""
    path = check_table(path)
    kind = path.suffix.lower()
    if kind in SEPARATORS:
        atomic_write(path, table.to_pandas().to_csv(sep=SEPARATORS[kind], index=False, lineterminator="\n"))
    else:
        content = io.BytesIO()
        pa.parquet.write_table(table, content)
        atomic_write(path, content.getvalue())
