"""The tables of nodes: joined by their ids, which are found by name, by place or by the edges that lead to them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.graph.edge_table import as_ids, read_edges
from gcnsl.graph.tables import IDS, Table, Written, read_table


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
        table, ids = each, as_ids(each, column)
        if ids.type != pa.int64() and (broken := pc.match_substring(ids, "\0").to_numpy()).any():
            raise InputError(f"{table.place(broken, column)} has a NUL character: remove it, or save the table again")
        repeated = np.asarray(pd.Index(ids.to_numpy()).duplicated())
        if repeated.any():
            row = int(np.flatnonzero(repeated)[0])
            rows = table.arrow.filter(pa.array(ids.to_pandas().duplicated(keep=False))).to_pandas()
            if rows.duplicated().sum() != repeated.sum():
                raise InputError(
                    f"{table.name}, row {row + 1}: an earlier row has the id {ids[row].as_py()!r} too; "
                    "remove one of the rows or change its id"
                )
            notes.append(f"{int(repeated.sum()):,} rows of {table.name} repeat an earlier one: they are left out")
            table, ids = replace(table, arrow=table.arrow.filter(pa.array(~repeated))), ids.filter(pa.array(~repeated))
        found.append((table, ids))
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
