"""Converts the caller's node ids, integers or strings, to node numbers 0 … n - 1."""

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
from gcnsl.graph.table_reading import Table

_STRING = pa.large_string()
"""The string type that pandas writes; Arrow converts its shorter one to it without copying the characters."""

_DENSE = 16
"""Integer ids are looked up in an array if it needs at most this many entries per node, else in a hash table."""


def as_ids(table: Table, column: str) -> pa.ChunkedArray:
    """Return a column of ids without missing values: int64 for numbers, else strings."""
    values = table.arrow[column]
    if values.null_count:
        place = table.place(values.is_null(), column)
        raise InputError(f"{place} is empty: every row needs an id; fill it or drop the row")
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        wanted = pa.int64() if numeric else _STRING
        return values if values.type == wanted else values.cast(wanted)
    except pa.ArrowException as error:
        raise InputError(
            f"{table.name}: column {column!r} can't be used as ids ({error}); give integers or strings"
        ) from error


def find_ids(ids: pa.ChunkedArray, nodes: str, edges: Table, columns: tuple[str, str]) -> NDArray[np.int32]:
    """Return the node numbers of both ends of every edge (2 × E).

    Args:
        ids: The ids of the nodes, in order.
        nodes: The name of their table, for messages.
        edges: The table of edges.
        columns: The two columns with the ends of the edges.

    Raises:
        InputError: If two nodes have the same id, or an edge has an end that is not the id of a node.
    """
    wanted = [as_ids(edges, column) for column in columns]
    if any(values.type != ids.type for values in wanted):
        ids, *wanted = (values.cast(_STRING) for values in (ids, *wanted))
    look_up = _look_up(ids, nodes)
    ends = np.empty((2, edges.arrow.num_rows), dtype=np.int32)
    with ThreadPoolExecutor(2) as pool:  # Arrow and NumPy release the interpreter's lock
        list(pool.map(look_up, wanted, ends))
    for column, values, numbers in zip(columns, wanted, ends, strict=True):
        if len(values) and numbers.min() < 0:
            unknown = numbers < 0
            value = values[int(np.flatnonzero(unknown)[0])].as_py()
            raise InputError(
                f"{edges.place(unknown, column)} is {value!r}, which is not an id in {nodes} "
                f"({int(unknown.sum())} such row(s)): add the node or drop the edge"
            )
    return ends


def _look_up(ids: pa.ChunkedArray, nodes: str) -> Callable[[pa.ChunkedArray, NDArray[np.int32]], None]:
    """Return a function that writes the node numbers of ids into an array, -1 for an unknown id."""
    if not pa.types.is_int64(ids.type):
        if pc.count_distinct(ids).as_py() != len(ids):
            raise _repeated(ids, nodes)
        return partial(_find_strings, pa.concat_arrays(ids.chunks))
    values = ids.to_numpy()
    low, high = int(values.min()), int(values.max())
    if high - low >= _DENSE * len(values):
        index = pd.Index(values)
        if not index.is_unique:
            raise _repeated(ids, nodes)
        return partial(_find_by_chunk, index.get_indexer)
    numbers, order = np.full(high - low + 1, -1, dtype=np.int32), np.arange(len(values), dtype=np.int32)
    numbers[values - low] = order
    if not np.array_equal(numbers[values - low], order):  # a later row has overwritten an earlier one
        raise _repeated(ids, nodes)
    return partial(_find_by_chunk, partial(_find_dense, numbers, low))


def _repeated(ids: pa.ChunkedArray, nodes: str) -> InputError:
    row = int(np.flatnonzero(ids.to_pandas().duplicated())[0])
    return InputError(
        f"{nodes}, row {row + 1}: an earlier row has the id {ids[row].as_py()!r} too; "
        "remove one of the rows or change its id"
    )


def _find_by_chunk(find: Callable[[NDArray[np.int64]], Any], wanted: pa.ChunkedArray, out: NDArray[np.int32]) -> None:
    """Apply ``find`` to each chunk of a long column, which saves a copy of the whole column."""
    start = 0
    for chunk in wanted.chunks:
        out[start : start + len(chunk)] = find(chunk.to_numpy())
        start += len(chunk)


def _find_dense(numbers: NDArray[np.int32], low: int, wanted: NDArray[np.int64]) -> NDArray[np.int32]:
    place = (wanted - low).view(np.uint64)  # ids below ``low`` wrap around to places beyond the last one
    if not len(place) or place.max() < len(numbers):
        return numbers.take(place, mode="clip")  # unlike numbers[place], this releases the interpreter's lock
    inside = place < len(numbers)
    found = np.full(len(wanted), -1, dtype=np.int32)
    found[inside] = numbers[place[inside]]
    return found


def _find_strings(ids: pa.Array, wanted: pa.ChunkedArray, out: NDArray[np.int32]) -> None:
    out[:] = pc.fill_null(pc.index_in(wanted, value_set=ids), -1).to_numpy()
