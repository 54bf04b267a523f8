"""A checked graph from two tables: one row a node, one row an edge.

Columns stay in Arrow from the file to the last check, so that a table of millions of rows costs about what reading it
costs. Every complaint names the table, the row and the column; the first row below the header is row 1.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.checks import encode_labels
from gcnsl.graph.ids import as_ids, find_ids
from gcnsl.graph.reading import Table, read_table
from gcnsl.graph.sources import from_arrays

Source = str | os.PathLike[str] | Any
"""A path (CSV, TSV, Parquet; ``.gz`` too for text), a pandas DataFrame or a pyarrow Table."""

_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
_LARGEST = np.finfo(np.float32).max
_BLOCK_ROWS = 2048
_SPLIT_NAMES = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}


def from_tables(
    nodes: Source,
    edges: Source,
    *,
    id: str | None = None,  # noqa: A002 - the name of the column, and what everyone calls it
    label: str | None = None,
    split: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    source: str | None = None,
    target: str | None = None,
) -> Data:
    """Read a graph from a table of nodes and a table of edges.

    Args:
        nodes: One row a node: an id, numeric features and, as far as known, a class.
        edges: One row an edge: the ids of its two ends. Other columns are not used.
        id: Column of ``nodes`` with the ids; by default ``id`` if there is one, else the first.
        label: Column of ``nodes`` with the classes, names or integers, empty (or -1) where unknown; by default
            ``label`` if there is one.
        split: Column of ``nodes`` that says ``train``, ``val``, ``test`` or nothing; by default ``split`` if there is
            one.
        features: Columns of ``nodes`` to use; by default all that are left.
        drop: Columns of ``nodes`` not to use as features.
        source: Column of ``edges`` with one end; by default ``source`` if there is one, else the first.
        target: Column of ``edges`` with the other end; by default ``target`` if there is one, else the second.

    Returns:
        The checked graph; ``node_ids`` are the ids and ``class_names`` the classes in sorted order.
    """
    with ThreadPoolExecutor(1) as pool:  # both files at once: Arrow reads one while the other is being checked
        edge_table = pool.submit(_read_edges, edges, source, target)
        fields, ids, name = _read_nodes(nodes, id=id, label=label, split=split, features=features, drop=drop)
        _release()
        ends = find_ids(ids, name, *edge_table.result())
    del edge_table
    _release()
    return from_arrays(edge_index=ends, **fields)


def _release() -> None:
    """Give back what the tables took, a good part of a large graph: Arrow would keep it for the next ones."""
    pa.default_memory_pool().release_unused()


def _read_nodes(
    nodes: Source,
    *,
    id: str | None,  # noqa: A002
    label: str | None,
    split: str | None,
    features: Sequence[str] | None,
    drop: Sequence[str],
) -> tuple[dict[str, Any], pa.ChunkedArray, str]:
    """What the table of nodes says, as arguments of ``from_arrays``; the ids as they are; the table's name."""
    table = read_table(nodes, "nodes", text=[(id or "id", 0)])
    if table.arrow.num_rows == 0:
        raise InputError(f"{table.name} has no rows: the graph is empty; give at least one node")
    id_column = table.column(id, "id", "id", 0)
    label = table.column(label, "label", "label", None)
    split = table.column(split, "split", "split", None)
    names = _feature_columns(table, features, {id_column, label, split, *drop}, drop)
    ids = as_ids(table, id_column)
    fields: dict[str, Any] = {"node_ids": ids.to_numpy(), "feature_names": names, "x": _features(table, names)}
    if label is not None:
        fields["y"], fields["class_names"] = _labels(table, label)
    if split is not None:
        fields |= _masks(table, split)
    return fields, ids, table.name


def _read_edges(edges: Source, source: str | None, target: str | None) -> tuple[Table, tuple[str, str]]:
    """The table of edges, and its columns that hold their ends."""
    table = read_table(edges, "edges", text=[(source or "source", 0), (target or "target", 1)])
    source = table.column(source, "source", "source", 0)
    target = table.column(target, "target", "target", 1)
    if source == target:
        raise InputError(f"{table.name}: source and target are both {source!r}; name two columns")
    return table, (source, target)


def _feature_columns(
    table: Table, wanted: Sequence[str] | None, used: set[str | None], drop: Sequence[str]
) -> list[str]:
    for argument, columns in (("features", wanted or ()), ("drop", drop)):
        for column in columns:
            table.column(column, argument, None, None)
    names = [name for name in table.names if name not in used] if wanted is None else list(wanted)
    if not names:
        raise InputError(f"{table.name} has no feature column beside {sorted(filter(None, used))}: add numeric columns")
    for name in names:
        kind = table.arrow.schema.field(name).type
        if not any(is_kind(kind) for is_kind in _NUMERIC):
            raise InputError(
                f"{table.name}: column {name!r} holds {kind}, not numbers, e.g. {table.example(name)}; "
                f"encode it as numbers, name it as the label, or leave it out with drop=[{name!r}]"
            )
    return names


def _features(table: Table, names: Sequence[str]) -> NDArray[np.float32]:
    columns = []
    for name in names:
        column = table.arrow[name]
        if column.null_count:
            raise InputError(f"{table.place(column.is_null(), name)} is empty: features must be given; fill it first")
        values = column.to_numpy()
        if not np.isfinite(values.sum(dtype=np.float64)) or np.abs(values).max() > _LARGEST:
            bad = ~(np.abs(values) <= _LARGEST)
            value = values[int(np.flatnonzero(bad)[0])]
            raise InputError(
                f"{table.place(bad, name)} is {value}: features must be finite in float32; fill or clip it"
            )
        columns.append(values)
    x = np.empty((table.arrow.num_rows, len(names)), dtype=np.float32)
    for low in range(0, len(x), _BLOCK_ROWS):  # columns into rows: a block at a time stays in the cache
        for k, values in enumerate(columns):
            x[low : low + _BLOCK_ROWS, k] = values[low : low + _BLOCK_ROWS]
    return x


def _labels(table: Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    column = table.arrow[name]
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_integer(column.type):
            values = column.to_pandas(integer_object_nulls=True)
        elif pa.types.is_floating(column.type):
            values = column.to_numpy()
        else:
            values = column.cast(pa.string()).to_pandas()
        y, classes = encode_labels(values)
    except (InputError, pa.ArrowException) as error:
        raise InputError(f"{table.name}: column {name!r} can't be used as the label: {error}") from error
    if len(classes) == 1:
        raise InputError(
            f"{table.name}: column {name!r} has one class only ({classes[0]!r}): there is nothing to tell apart; "
            "label nodes of at least two"
        )
    return y, classes


def _masks(table: Table, name: str) -> dict[str, NDArray[np.bool_]]:
    try:
        column = table.arrow[name].cast(pa.string())
    except pa.ArrowException as error:
        raise InputError(f"{table.name}: column {name!r} can't be read as text ({error})") from error
    known = pc.is_in(column, value_set=pa.array(list(_SPLIT_NAMES)))
    unknown = pc.and_(column.is_valid(), pc.and_(pc.invert(known), pc.not_equal(column, "")))
    if pc.any(unknown).as_py():
        value = column.filter(unknown)[0].as_py()
        raise InputError(f"{table.place(unknown, name)} is {value!r}: write train, val, test or nothing")
    masks = {}
    for value, mask in _SPLIT_NAMES.items():
        chosen = pc.fill_null(pc.equal(column, value), False).to_numpy().astype(bool)
        if chosen.any():
            masks[mask] = chosen
    if "train_mask" not in masks:
        raise InputError(
            f"{table.name}: column {name!r} marks no node as train; mark some, or give split another column"
        )
    return masks
