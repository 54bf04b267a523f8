"""The weights of the edges in a table of edges: which column has them, and their values."""

import warnings
from collections.abc import Collection
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gcnsl.errors import ArgumentError, InputError
from gcnsl.graph.arcs import WEIGHT_RULE, unusable_weights
from gcnsl.graph.masks import GraphWarning
from gcnsl.graph.table_reading import Table


def find_weights(table: Table, name: str | Literal[False] | None, ends: Collection[str]) -> str | None:
    """Return the column with the weights, or ``None`` if the edges have none.

    ``name`` is the column that the caller named, or ``False`` for no weights. By default it is ``weight`` if there is
    such a column; if that holds no numbers, it is left out with a :class:`GraphWarning`. ``ends`` are the columns with
    the ends of the edges.
    """
    if name is False or (name is None and ("weight" not in table.columns or "weight" in ends)):
        return None
    column = table.check_column("weight" if name is None else name, "weight")
    if column in ends:
        raise ArgumentError("weight", column, f"is the column of {table.name} with an end of the edges: name another")
    kind = table.columns[column].type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or not table.arrow.num_rows:
        return column
    found = _first_text(table, column)
    if name is not None:
        raise InputError(f"{found}: {WEIGHT_RULE}")
    warnings.warn(f"the edges have no weights, because {found}", GraphWarning, stacklevel=3)
    return None


def read_weights(table: Table, name: str) -> NDArray[np.float64]:
    """Return the weights, one for each row (E), all finite and positive."""
    column = table.columns[name]
    if column.null_count:
        raise InputError(f"{table.place(column.is_null(), name)} is empty: {WEIGHT_RULE}")
    values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    bad = unusable_weights(values)
    if bad.any():
        raise InputError(f"{table.place(bad, name)} is {column[int(bad.argmax())].as_py()}: {WEIGHT_RULE}")
    return values


def _first_text(table: Table, name: str) -> str:
    """Return where a column that does not hold numbers has something else, and what."""
    column = table.columns[name]
    if column.null_count == len(column):
        return f"{table.name}, column {name!r} is empty"
    values = column.to_pandas()
    unlike = values.notna() & pd.to_numeric(values.astype(str), errors="coerce").isna()
    bad = unlike if unlike.any() else values.notna()  # all may be digits that are stored as text
    return f"{table.place(bad, name)} is {str(values[bad].iloc[0])!r}, which is not a number"


def note_unused(table: Table, used: Collection[str | None]) -> list[str]:
    """Return a note that names the columns of the table that are not used; none if all are."""
    others = [name for name in table.columns if name not in used]
    shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    return [f"Columns of {table.name} that are not used: {shown}"] if others else []
