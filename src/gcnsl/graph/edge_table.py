"""The table of edges: its ends as node numbers 0 … n - 1, found by the ids of the nodes, and its weights."""

import os
import warnings
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import ArgumentError, InputError
from gcnsl.graph.edges import WEIGHT_RULE, unusable_weights
from gcnsl.graph.masks import GraphWarning
from gcnsl.graph.tables import Table, read_table

ENDS = ("source", "target")
_STRING = pa.large_string()
"""The string type that pandas writes; Arrow converts its shorter one to it without copying the characters."""


def read_edges(
    edges: str | os.PathLike[str] | Any, source: str | None, target: str | None, *, header: bool | None = None
) -> tuple[Table, tuple[str, str]]:
    """Read a table of edges, and find the columns with their ends; ``header`` is that of :func:`read_table`."""
    first, second = ENDS
    wanted = [(source or first, 0), (target or second, 1)]
    table = read_table(edges, "edges", text=wanted, unnamed=ENDS, header=header)
    ends = table.find_column(source, first, 0), table.find_column(target, second, 1)
    if ends[0] == ends[1]:
        raise InputError(f"{table.name}: source and target are both {ends[0]!r}; name two columns")
    return table, ends


def as_ids(table: Table, column: str) -> pa.ChunkedArray:
    """Return a column of ids without missing values: int64 for numbers, else strings."""
    values = table.columns[column]
    if values.null_count:
        place = table.place(values.is_null(), column)
        raise InputError(f"{place} is empty: every row needs an id; fill it or drop the row")
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        wanted = pa.int64() if numeric else _STRING
        values = values if values.type == wanted else values.cast(wanted)
    except pa.ArrowException as error:
        raise InputError(
            f"{table.name}: column {column!r} can't be used as ids ({error}); give integers or strings"
        ) from error
    broken = np.zeros(len(values), dtype=bool) if numeric else pc.match_substring(values, "\0").to_numpy()
    if broken.any():
        raise InputError(f"{table.place(broken, column)} has a NUL character: remove it, or save the table again")
    return values


def are_ids(texts: Iterable[str], ids: pa.ChunkedArray) -> bool:
    """Whether all of these texts are ids, which are integers or strings."""
    known = pa.array(list(texts), pa.string()).cast(_STRING)
    return bool(pc.all(pc.is_in(known, value_set=pa.concat_arrays(ids.cast(_STRING).chunks))).as_py())


def find_ids(ids: pa.ChunkedArray, nodes: str, edges: Table, columns: tuple[str, str]) -> NDArray[np.int32]:
    """Return the node numbers of both ends of every edge (2 × E).

    ``ids`` are the ids of the nodes, in order; ``nodes`` is the name of their table; ``columns`` are those of the ends.
    """
    wanted = [as_ids(edges, column) for column in columns]
    if any(values.type != ids.type for values in wanted):
        ids, *wanted = (values.cast(_STRING) for values in (ids, *wanted))
    find = _index(ids)
    if find is None:
        row = int(np.flatnonzero(ids.to_pandas().duplicated())[0])
        raise InputError(
            f"{nodes}, row {row + 1}: an earlier row has the id {ids[row].as_py()!r} too; "
            "remove one of the rows or change its id"
        )
    with ThreadPoolExecutor(2) as pool:  # Arrow and pandas release the interpreter's lock
        ends = list(pool.map(find, wanted))
    for column, values, numbers in zip(columns, wanted, ends, strict=True):
        unknown = numbers < 0
        if unknown.any():
            value = values.filter(unknown)[0].as_py()
            raise InputError(
                f"{edges.place(unknown, column)} is {value!r}, which is not an id in {nodes} "
                f"({int(unknown.sum())} such row(s)): add the node or drop the edge"
            )
    return np.stack(ends)


def _index(ids: pa.ChunkedArray) -> Callable[[pa.ChunkedArray], NDArray[np.int32]] | None:
    """Return a function from ids to node numbers, -1 for an unknown id; ``None`` if two nodes have the same id."""
    if pa.types.is_int64(ids.type):  # of which Arrow's look-up takes twice as long
        index = pd.Index(ids.to_numpy())
        return (lambda column: index.get_indexer(column.to_numpy()).astype(np.int32)) if index.is_unique else None
    known = pa.concat_arrays(ids.chunks)
    unique = pc.count_distinct(known).as_py() == len(known)
    return (lambda column: pc.fill_null(pc.index_in(column, value_set=known), -1).to_numpy()) if unique else None


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
    warnings.warn(f"the edges have no weights, because {found}", GraphWarning, stacklevel=4)
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
