"""Tables to files: CSV, TSV or Parquet by the file's ending, there whole or not at all."""

import io
import os
from pathlib import Path

import pyarrow as pa
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
    """Write a table to a file of that kind."""
    path = check_table(path)
    kind = path.suffix.lower()
    if kind not in _PARQUET:
        atomic_write(path, table.to_pandas().to_csv(sep=_SEPARATORS[kind], index=False, lineterminator="\n"))
        return
    content = io.BytesIO()
    pa.parquet.write_table(table, content)
    atomic_write(path, content.getvalue())
