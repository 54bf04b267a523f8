"""The tables of nodes and of edges, linked by the ids of the nodes.

Nodes are joined by their ids, which are found by name, by place or by the edges that lead to them. The ends of edges
become node numbers 0 … n - 1.
"""

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.graph.edges import WEIGHT_RULE, unusable_weights
from gcnsl.graph.masks import GraphWarning
from gcnsl.graph.tables import ENDS, IDS, Table, Written, check_ends, end_columns, read_table

KIND = "table"
"""The column that tells edges of several tables apart."""
LARGEST_GAP = 8
"""Integers of at most so many times as many values are looked up in an array, in a fifth of a hash table's time."""
_STRING = pa.large_string()
"""The string type that pandas writes; Arrow converts its shorter one to it without copying the characters."""


def read_tables(
    nodes: list[Any],
    edges: list[Any],
    *,
    id_column: str | None,
    texts: Sequence[str],
    others: set[str | None],
    ends: tuple[str | None, str | None],
    written: Written,
) -> tuple[Table, str | None, pa.ChunkedArray, Table, NDArray[np.int32], list[str]]:
    """The table of nodes, the column with their ids and the ids; the edges, the numbers of their ends, and notes.

    If no column is known to hold the ids, it is the first one whose values are not labels or splits. If the edges do
    not lead to these, rows are counted from 0 or 1.
    """

    def id_of(names: Sequence[str]) -> str:
        known = id_column if id_column in names else next((name for name in IDS if name in names), None)
        return known or next((name for name in names if name not in others), names[0])

    def text(names: Sequence[str]) -> list[str]:
        return [id_of(names), *texts] if names else []

    tables = [read_table(each, "nodes", text=text, written=written) for each in nodes]
    for table in tables:
        if not table.arrow.num_rows:
            raise InputError(f"{table.name} has no rows: the graph is empty; give at least one node")
    if id_column is not None and not any(id_column in table.columns for table in tables):
        tables[0].check_column(id_column, "id")
    notes = [note for table in tables for note in table.notes]
    columns = [id_of(list(table.columns)) for table in tables]
    column, is_sure = columns[0], columns[0] in (id_column, *IDS) or len(tables) > 1
    options: dict[str, Any] = {"source": ends[0], "target": ends[1], "written": written}
    try:
        table, ids, of_nodes = _joined(tables, columns)
        edge_table, found, of_edges = read_edges(edges, ids, table.name, **options)
    except InputError as error:
        rows, distinct = tables[0].arrow.num_rows, len(tables[0].columns[column].unique())
        if is_sure or rows / 2 < distinct < rows:  # ids, of which some are repeated
            raise
        table = read_table(nodes[0], "nodes", text=lambda names: texts, written=written)
        for first in (0, 1):
            ids = pa.chunked_array([np.arange(first, rows + first)])
            try:
                edge_table, found, of_edges = read_edges(edges, ids, table.name, **options)
            except InputError:
                continue
            if not any("left out" in note for note in of_edges):
                note = (
                    f"{table.name} has no column of ids that edges lead to: its rows are numbered from {first} (--id)"
                )
                return table, None, ids, edge_table, found, [*notes, note, *of_edges]
        raise error from None
    if not is_sure and len(table.columns) > 1 and column != next(iter(table.columns)):
        notes.append(f"{table.name}: the ids are in column {column!r} (--id)")
    return table, column, ids, edge_table, found, [*notes, *of_nodes, *of_edges]


def _joined(tables: list[Table], columns: list[str]) -> tuple[Table, pa.ChunkedArray, list[str]]:
    """One table of several, joined by the columns with their ids; the ids; and notes."""
    found, notes = [], list[str]()
    for each, column in zip(tables, columns, strict=True):
        table, ids, told = _without_repeats(each, column)
        found.append((table, ids))
        notes += told
    if len(found) == 1:
        return *found[0], notes
    if len({ids.type for _, ids in found}) > 1:
        found = [(table, ids.cast(pa.large_string())) for table, ids in found]
    first, *others = (pd.Index(ids.to_numpy()) for _, ids in found)
    union = first
    for (table, _), index in zip(found[1:], others, strict=True):
        both, further = int(index.isin(first).sum()), index[~index.isin(union)]
        notes.append(
            f"{table.name} has rows of {both:,} of the {len(first):,} nodes of {found[0][0].name}, and of "
            f"{len(index) - both:,} others"
        )
        union = union.append(further)
    merged: dict[str, pa.ChunkedArray] = {}
    for (table, ids), own in zip(found, columns, strict=True):
        place = pd.Index(ids.to_numpy()).get_indexer(union)
        taken = table.arrow.take(pa.array(np.where(place < 0, 0, place), mask=place < 0))
        for name, column in zip(taken.column_names, taken.columns, strict=True):
            if name == own:
                continue
            if name not in merged:
                merged[name] = column
            elif merged[name].type == column.type:
                merged[name] = pc.coalesce(merged[name], column)
            else:
                text = pa.large_string()
                merged[name] = pc.coalesce(merged[name].cast(text), column.cast(text))
    all_ids = pa.chunked_array([pa.array(union)]).cast(found[0][1].type)
    arrow = pa.table({columns[0]: all_ids, **merged})
    return replace(found[0][0], arrow=arrow, is_text=all(table.is_text for table, _ in found)), all_ids, notes


def _without_repeats(table: Table, column: str) -> tuple[Table, pa.ChunkedArray, list[str]]:
    """A table without rows that repeat an earlier one, the ids in a column, and notes; an error if only ids repeat."""
    ids = as_ids(table, column)
    if ids.type != pa.int64() and (broken := pc.match_substring(ids, "\0").to_numpy()).any():
        raise InputError(f"{table.place(broken, column)} has a NUL character: remove it, or save the table again")
    repeated = np.asarray(pd.Index(ids.to_numpy()).duplicated())
    if not repeated.any():
        return table, ids, []
    row = int(np.flatnonzero(repeated)[0])
    rows = table.arrow.filter(pa.array(ids.to_pandas().duplicated(keep=False))).to_pandas()
    if rows.duplicated().sum() != repeated.sum():
        raise InputError(
            f"{table.name}, row {row + 1}: an earlier row has the id {ids[row].as_py()!r} too; "
            "remove one of the rows or change its id"
        )
    note = f"{int(repeated.sum()):,} rows of {table.name} repeat an earlier one: they are left out"
    return replace(table, arrow=table.arrow.filter(pa.array(~repeated))), ids.filter(pa.array(~repeated)), [note]


def read_edges(
    tables: Sequence[Any],
    ids: pa.ChunkedArray,
    nodes: str,
    *,
    source: str | None,
    target: str | None,
    written: Written,
) -> tuple[Table, NDArray[np.int32], list[str]]:
    """Read tables of edges between nodes with these ids, which are in order and from the table ``nodes``.

    Returns:
        The other columns of the edges, the node numbers of their ends (2 × E), and notes. Edges of several tables have
        a column :data:`KIND`; those to nodes that do not exist are left out, unless they are most.
    """
    found, notes = [], list[str]()

    def are_ids(cells: Sequence[str]) -> bool:
        known = pc.is_in(pa.array(cells, _STRING), value_set=ids.cast(_STRING).combine_chunks())
        return source is None and target is None and pc.all(known).as_py()

    for number, each in enumerate(tables):
        table = read_table(
            each,
            "edges",
            text=lambda names: end_columns(names, source, target) or (),
            unnamed=ENDS[0],
            are_ids=are_ids,
            written=written,
        )
        columns = check_ends(table, source, target)
        notes += table.notes
        if source is None and target is None and columns != ENDS[0]:
            notes.append(
                f"{table.name}: the ends of the edges are {columns[0]!r} and {columns[1]!r} (--source, --target)"
            )
        ends, there = _find_ids(ids, nodes, table, columns)
        if not there.all():
            row = int(np.flatnonzero(~there)[0])
            which = columns[int(ends[0, row] >= 0)]
            lost = int((~there).sum())
            notes.append(
                f"{lost:,} of {len(there):,} edges of {table.name} are left out: their ends are not in {nodes}; the "
                f"first is row {row + 1}, {which!r}: {table.columns[which][row].as_py()!r}"
            )
        arrow = table.arrow.drop_columns([*columns])
        kind = Path(table.name).name.partition(".")[0] if isinstance(each, str | Path) else f"{table.name} {number + 1}"
        if len(tables) > 1:
            arrow = arrow.append_column(KIND, pa.array([kind], pa.string()).take(pa.array(np.zeros(len(there), int))))
        if not there.all():
            arrow, ends = arrow.filter(pa.array(there)), ends[:, there]
        found.append((arrow, ends, table))
    arrows, all_ends, read = zip(*found, strict=True)
    try:
        arrow = arrows[0] if len(arrows) == 1 else pa.concat_tables(arrows, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"the tables of edges do not fit together ({error}): rename a column") from error
    ends = all_ends[0] if len(all_ends) == 1 else np.concatenate(all_ends, axis=1)
    return replace(read[0], arrow=arrow, notes=()), ends, notes


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
    return values


def _find_ids(
    ids: pa.ChunkedArray, nodes: str, edges: Table, columns: tuple[str, str]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The node numbers of both ends of every edge (2 × E), -1 for none, and which edges have both ends (E)."""
    wanted = [as_ids(edges, column) for column in columns]
    if any(values.type != ids.type for values in wanted):
        ids, *wanted = (values.cast(_STRING) for values in (ids, *wanted))
    known = ids.combine_chunks()
    ends = _both_positions(known, wanted)
    if known.type == _STRING and (ends < 0).all():
        ends = _both_positions(known, [_as_whole(values) for values in wanted])
    there: NDArray[np.bool_] = (ends[0] >= 0) & (ends[1] >= 0)
    if len(there) and 2 * there.sum() < len(there):
        row = int(np.flatnonzero(~there)[0])
        which = int(ends[0, row] >= 0)
        place, value = edges.place_in_row(row, columns[which]), wanted[which][row].as_py()
        raise InputError(
            f"{place} is {value!r}, which is not an id in {nodes} ({int((~there).sum())} such row(s)): add the node, "
            "drop the edge, or name the columns of the ids"
        )
    return ends, there


def _as_whole(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text such as ``1.000e+00`` as ``1``; all else as it is."""
    try:
        return values.cast(pa.float64()).cast(pa.int64()).cast(_STRING)
    except pa.ArrowException:
        return values


def _both_positions(known: pa.Array, ends: list[pa.ChunkedArray]) -> NDArray[np.int32]:
    """The :func:`positions` of sources and of targets (2 × E); neither look-up holds Python's lock."""
    with ThreadPoolExecutor(len(ends)) as pool:
        return np.stack([*pool.map(partial(positions, known), ends)])


def positions(known: pa.Array, values: pa.ChunkedArray) -> NDArray[np.int32]:
    """The place of each value among the known ones, -1 if it is none of them."""
    if not pa.types.is_int64(known.type):
        found: NDArray[np.int32] = pc.fill_null(pc.index_in(values, value_set=known), -1).to_numpy()
        return found
    ids, wanted = known.to_numpy(), values.to_numpy()
    low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, 0)
    if high - low > LARGEST_GAP * len(ids):  # Arrow's look-up of integers takes four times as long as pandas'
        in_table: NDArray[np.int32] = pd.Index(ids).get_indexer(wanted).astype(np.int32)
        return in_table
    places = np.full(high - low + 1, -1, dtype=np.int32)
    places[ids - low] = np.arange(len(ids), dtype=np.int32)
    inside = (wanted >= low) & (wanted <= high)
    return np.where(inside, places[np.where(inside, wanted - low, 0)], np.int32(-1))


def read_weights(
    table: Table, ends: NDArray[np.int32], name: str | Literal[False] | None, notes: list[str]
) -> tuple[Table, NDArray[np.int32], NDArray[np.float64] | None, str | None]:
    """The edges and their ends without those of weight 0, the weights, and the column that holds them, if there is one.

    Of a column with negative numbers only the name is returned. One that is called ``weight`` and holds no numbers
    holds no weights.
    """
    none = table, ends, None, None
    if name is False or (name is None and "weight" not in table.columns):
        return none
    column = table.check_column("weight" if name is None else name, "weight")
    values = table.columns[column]
    numbers = pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)
    if not numbers and len(values):
        why = _first_text(table, column)
        if name is not None:
            raise InputError(f"{why}: {WEIGHT_RULE}")
        warnings.warn(f"the edges have no weights, because {why}", GraphWarning, stacklevel=3)
        return none
    if values.null_count:
        raise InputError(f"{table.place(values.is_null(), column)} is empty: {WEIGHT_RULE}")
    weights: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
    if (weights < 0).any() and np.isfinite(weights).all():
        told = "edges of the two signs are of two kinds, and features are made of both"
        notes.append(f"{column!r} has negative values: {told}")
        return table, ends, None, column
    bad = unusable_weights(weights) & (weights != 0)
    if bad.any():
        raise InputError(f"{table.place(bad, column)} is {values[int(bad.argmax())].as_py()}: {WEIGHT_RULE}")
    if not weights.all():
        notes.append(f"{int((weights == 0).sum()):,} edges of weight 0 are left out")
        table, ends = replace(table, arrow=table.arrow.filter(pa.array(weights != 0))), ends[:, weights != 0]
    return table, ends, weights[weights != 0], column


def _first_text(table: Table, name: str) -> str:
    """Where a column that does not hold numbers has something else, and what."""
    column = table.columns[name]
    if column.null_count == len(column):
        return f"{table.name}, column {name!r} is empty"
    values = column.to_pandas()
    unlike = values.notna() & pd.to_numeric(values.astype(str), errors="coerce").isna()
    bad = unlike if unlike.any() else values.notna()  # all may be digits that are stored as text
    return f"{table.place(bad, name)} is {str(values[bad].iloc[0])!r}, which is not a number"
