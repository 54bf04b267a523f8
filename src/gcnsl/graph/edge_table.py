"""The table of edges: its ends as node numbers 0 … n - 1, found by the ids of the nodes, and its weights."""

import os
import warnings
from collections.abc import Collection, Sequence
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
    edges: str | os.PathLike[str] | Any,
    ids: pa.ChunkedArray,
    nodes: str,
    *,
    source: str | None,
    target: str | None,
    weight: str | Literal[False] | None,
) -> tuple[dict[str, Any], str | None, list[str]]:
    """Read a table of edges between nodes with these ids, which are in order and from the table ``nodes``.

    Returns:
        The arguments of :func:`gcnsl.from_arrays` that come from it, the column of weights, and notes.
    """

    def are_ids(cells: Sequence[str]) -> bool:
        known = pc.is_in(pa.array(cells, _STRING), value_set=ids.cast(_STRING).combine_chunks())
        return source is None and target is None and pc.all(known).as_py()

    first, second = ENDS
    wanted = [(source or first, 0), (target or second, 1)]
    table = read_table(edges, "edges", text=wanted, unnamed=ENDS, are_ids=are_ids)
    ends = table.find_column(source, first, 0), table.find_column(target, second, 1)
    if ends[0] == ends[1]:
        raise InputError(f"{table.name}: source and target are both {ends[0]!r}; name two columns")
    notes = []
    if table.first_row:
        cells = ", ".join(table.first_row[:5])
        notes.append(f"{table.name} has no header: its first row, {cells}, is taken for an edge")
    fields: dict[str, Any] = {"edge_index": _find_ids(ids, nodes, table, ends)}
    weights = _weight_column(table, weight, ends)
    if weights is not None:
        fields["edge_weight"] = _weights(table, weights)
    unused = [name for name in table.columns if name not in (*ends, weights, "weight" if weight is False else None)]
    if unused:
        shown = ", ".join(unused[:5]) + (f" and {len(unused) - 5} more" if len(unused) > 5 else "")
        notes.append(f"Columns of {table.name} that are not used: {shown}")
    return fields, weights, notes


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
        values = values.cast(pa.int64() if numeric else _STRING)
    except pa.ArrowException as error:
        raise InputError(
            f"{table.name}: column {column!r} can't be used as ids ({error}); give integers or strings"
        ) from error
    broken = np.zeros(len(values), dtype=bool) if numeric else pc.match_substring(values, "\0").to_numpy()
    if broken.any():
        raise InputError(f"{table.place(broken, column)} has a NUL character: remove it, or save the table again")
    return values


def _find_ids(ids: pa.ChunkedArray, nodes: str, edges: Table, columns: tuple[str, str]) -> NDArray[np.int32]:
    """The node numbers of both ends of every edge (2 × E), which are in these columns."""
    wanted = [as_ids(edges, column) for column in columns]
    if any(values.type != ids.type for values in wanted):
        ids, *wanted = (values.cast(_STRING) for values in (ids, *wanted))
    known = ids.combine_chunks()
    if pc.count_distinct(known).as_py() < len(known):
        row = int(np.flatnonzero(known.to_pandas().duplicated())[0])
        raise InputError(
            f"{nodes}, row {row + 1}: an earlier row has the id {known[row].as_py()!r} too; "
            "remove one of the rows or change its id"
        )
    ends = []
    for column, values in zip(columns, wanted, strict=True):
        found = _positions(known, values)
        unknown = found < 0
        if unknown.any():
            value = values.filter(unknown)[0].as_py()
            raise InputError(
                f"{edges.place(unknown, column)} is {value!r}, which is not an id in {nodes} "
                f"({int(unknown.sum())} such row(s)): add the node or drop the edge"
            )
        ends.append(found.astype(np.int32))
    return np.stack(ends)


def _positions(known: pa.Array, values: pa.ChunkedArray) -> Any:
    """The place of each value among the known ones, -1 if it is none of them."""
    if pa.types.is_int64(known.type):  # of which Arrow's look-up takes four times as long; of text, pandas' does
        return pd.Index(known.to_numpy()).get_indexer(values.to_numpy())
    return pc.fill_null(pc.index_in(values, value_set=known), -1).to_numpy()


def _weight_column(table: Table, name: str | Literal[False] | None, ends: Collection[str]) -> str | None:
    """The column with the weights, or ``None`` if the edges have none.

    By default it is ``weight``, unless that is one of the ``ends`` or holds no numbers (a :class:`GraphWarning`).
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


def _weights(table: Table, name: str) -> NDArray[np.float64]:
    """The weights, one for each row (E), all finite and positive."""
    column = table.columns[name]
    if column.null_count:
        raise InputError(f"{table.place(column.is_null(), name)} is empty: {WEIGHT_RULE}")
    values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    bad = unusable_weights(values)
    if bad.any():
        raise InputError(f"{table.place(bad, name)} is {column[int(bad.argmax())].as_py()}: {WEIGHT_RULE}")
    return values


def _first_text(table: Table, name: str) -> str:
    """Where a column that does not hold numbers has something else, and what."""
    column = table.columns[name]
    if column.null_count == len(column):
        return f"{table.name}, column {name!r} is empty"
    values = column.to_pandas()
    unlike = values.notna() & pd.to_numeric(values.astype(str), errors="coerce").isna()
    bad = unlike if unlike.any() else values.notna()  # all may be digits that are stored as text
    return f"{table.place(bad, name)} is {str(values[bad].iloc[0])!r}, which is not a number"
