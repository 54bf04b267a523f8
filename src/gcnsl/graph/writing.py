"""Tables to files: CSV, TSV or Parquet by the file's ending, there whole or not at all."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gcnsl.errors import InputError
from gcnsl.files import atomic_write

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")


def check_table(path: str | os.PathLike[str]) -> Path:
    """The path, if its ending is that of a table we can write."""
    kinds = (*_SEPARATORS, *_PARQUET)
    if Path(path).suffix.lower() not in kinds:
        raise InputError(f"output({os.fspath(path)!r}) is of no known kind: end its name in {', '.join(kinds)}")
    return Path(path)


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write a table; ids and names that could be read as something else are quoted."""
    path, content = check_table(path), io.BytesIO()
    kind = path.suffix.lower()
    if kind in _PARQUET:
        pa.parquet.write_table(table, content)
    else:
        pa.csv.write_csv(table, content, pa.csv.WriteOptions(delimiter=_SEPARATORS[kind]))
    atomic_write(path, content.getvalue())
