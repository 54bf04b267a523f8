"""From the caller's node ids, of any type, to node numbers 0 … n-1, for millions of edge ends at a time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.graph.reading import Table

_DENSE = 16
"""Integer ids are looked up in an array where that array has at most so many entries a node, else in a hash table."""


def as_ids(table: Table, column: str) -> pa.Array:
    """A column of ids: int64 if they are integers, text otherwise; none missing."""
    values = table.arrow[column]
    if values.null_count:
        raise InputError(
            f"{table.place(values.is_null(), column)} is empty: every row needs an id; fill it or drop the row"
        )
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            values = values.cast(pa.int64())
        elif not pa.types.is_large_string(values.type):
            values = values.cast(pa.string())
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    except pa.ArrowException as error:
        raise InputError(
            f"{table.name}: column {column!r} can't be used as ids ({error}); give integers or text"
        ) from error


def find_ids(ids: pa.Array, nodes: Table, edges: Table, columns: tuple[str, str]) -> NDArray[np.int32]:
    """Node numbers of the two ends of every edge, 2 × E.

    Args:
        ids: The nodes' ids, in order.
        nodes: Their table, for messages.
        edges: The table of edges.
        columns: Its columns that hold the ends.

    Raises:
        InputError: If an id is given to two nodes, or an edge ends at an id that no node has.
    """
    _refuse_repeats(ids, nodes)
    wanted = [as_ids(edges, column) for column in columns]
    if any(values.type != ids.type for values in wanted):
        ids, *wanted = (values.cast(pa.string()) for values in (ids, *wanted))
    look_up = _look_up(ids)
    ends = np.empty((2, edges.arrow.num_rows), dtype=np.int32)
    for side, (column, values) in enumerate(zip(columns, wanted, strict=True)):
        ends[side] = look_up(values)
        if len(values) and ends[side].min() < 0:
            unknown = ends[side] < 0
            value = values[int(np.flatnonzero(unknown)[0])].as_py()
            raise InputError(
                f"{edges.place(unknown, column)} is {value!r}, which is the id of no row in {nodes.name} "
                f"({int(unknown.sum())} such row(s)): add the node or drop the edge"
            )
    return ends


def _refuse_repeats(ids: pa.Array, table: Table) -> None:
    if pc.count_distinct(ids).as_py() < len(ids):
        row = int(np.flatnonzero(ids.to_pandas().duplicated())[0])
        raise InputError(
            f"{table.name}, row {row + 1}: id {ids[row].as_py()!r} is given to an earlier row too; "
            "remove one of the rows or give it an id of its own"
        )


def _look_up(ids: pa.Array) -> Callable[[pa.Array], Any]:
    """A function from ids to node numbers, -1 for an unknown id, by the quickest of three exact ways."""
    if not pa.types.is_int64(ids.type) or not len(ids):
        return partial(_find_text, ids)
    values = ids.to_numpy()
    low, high = int(values.min()), int(values.max())
    if high - low >= _DENSE * len(values):
        return partial(_find_hashed, pd.Index(values))
    numbers = np.full(high - low + 1, -1, dtype=np.int32)
    numbers[values - low] = np.arange(len(values), dtype=np.int32)
    return partial(_find_dense, numbers, low)


def _find_dense(numbers: NDArray[np.int32], low: int, wanted: pa.Array) -> NDArray[np.int32]:
    values: NDArray[np.int64] = wanted.to_numpy()
    if not len(values) or (values.min() >= low and values.max() < low + len(numbers)):
        return numbers[values - low]
    inside = (values >= low) & (values < low + len(numbers))
    found = np.full(len(values), -1, dtype=np.int32)
    found[inside] = numbers[values[inside] - low]
    return found


def _find_hashed(index: pd.Index, wanted: pa.Array) -> Any:
    return index.get_indexer(wanted.to_numpy())


def _find_text(ids: pa.Array, wanted: pa.Array) -> NDArray[Any]:
    """Halves on two threads: Arrow's look-up runs on one, and releases the interpreter's lock."""
    middle = len(wanted) // 2
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda part: pc.index_in(part, value_set=ids), (wanted[:middle], wanted[middle:]))
        return np.concatenate([pc.fill_null(part, -1).to_numpy(zero_copy_only=False) for part in parts])
