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
from gcnsl.graph.edges import COMPILED_FROM, HAS_NUMBA
from gcnsl.graph.reading import Table

_TEXT = pa.large_string()
"""What pandas writes; from Arrow's shorter text it is made without copying a letter."""

_DENSE = 16
"""Integer ids are looked up in an array where that array has at most so many entries a node, else in a hash table."""


def as_ids(table: Table, column: str) -> pa.ChunkedArray:
    """A column of ids: int64 if they are integers, text otherwise; none missing."""
    values = table.arrow[column]
    if values.null_count:
        raise InputError(
            f"{table.place(values.is_null(), column)} is empty: every row needs an id; fill it or drop the row"
        )
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        whole = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        wanted = pa.int64() if whole else _TEXT
        return values if values.type == wanted else values.cast(wanted)
    except pa.ArrowException as error:
        raise InputError(
            f"{table.name}: column {column!r} can't be used as ids ({error}); give integers or text"
        ) from error


def find_ids(ids: pa.ChunkedArray, nodes: str, edges: Table, columns: tuple[str, str]) -> NDArray[np.int32]:
    """Node numbers of the two ends of every edge, 2 × E.

    Args:
        ids: The nodes' ids, in order.
        nodes: Their table's name, for messages.
        edges: The table of edges.
        columns: Its columns that hold the ends.

    Raises:
        InputError: If an id is given to two nodes, or an edge ends at an id that no node has.
    """
    wanted = [as_ids(edges, column) for column in columns]
    if any(values.type != ids.type for values in wanted):
        ids, *wanted = (values.cast(_TEXT) for values in (ids, *wanted))
    look_up = _look_up(ids, nodes, len(wanted[0]))
    ends = np.empty((2, edges.arrow.num_rows), dtype=np.int32)
    with ThreadPoolExecutor(2) as pool:  # Arrow's and NumPy's look-ups release the interpreter's lock
        list(pool.map(look_up, wanted, ends))
    for column, values, numbers in zip(columns, wanted, ends, strict=True):
        if len(values) and numbers.min() < 0:
            unknown = numbers < 0
            value = values[int(np.flatnonzero(unknown)[0])].as_py()
            raise InputError(
                f"{edges.place(unknown, column)} is {value!r}, which is the id of no row in {nodes} "
                f"({int(unknown.sum())} such row(s)): add the node or drop the edge"
            )
    return ends


def _look_up(ids: pa.ChunkedArray, nodes: str, count: int) -> Callable[[pa.ChunkedArray, NDArray[np.int32]], None]:
    """A function that writes the node numbers of ids, -1 for an unknown one, by the quickest exact way for so many."""
    if not pa.types.is_int64(ids.type):
        return _look_up_text(ids, nodes, compiled=HAS_NUMBA and count >= COMPILED_FROM)
    values = ids.to_numpy()
    low, high = int(values.min()), int(values.max())
    if high - low >= _DENSE * len(values):
        index = pd.Index(values)
        if not index.is_unique:
            _refuse_repeat(ids, nodes)
        return partial(_by_chunk, index.get_indexer)
    numbers, order = np.full(high - low + 1, -1, dtype=np.int32), np.arange(len(values), dtype=np.int32)
    numbers[values - low] = order
    if not np.array_equal(numbers[values - low], order):  # a later row has taken an earlier one's place
        _refuse_repeat(ids, nodes)
    return partial(_by_chunk, partial(_find_dense, numbers, low))


def _look_up_text(
    ids: pa.ChunkedArray, nodes: str, *, compiled: bool
) -> Callable[[pa.ChunkedArray, NDArray[np.int32]], None]:
    texts = pa.concat_arrays(ids.chunks)
    if compiled:
        from gcnsl.graph.text_table import TextTable

        table = TextTable(texts)
        unique, find = table.unique, table.find
    else:
        unique, find = pc.count_distinct(ids).as_py() == len(ids), partial(_find_text, texts)
    if not unique:
        _refuse_repeat(ids, nodes)
    return find


def _refuse_repeat(ids: pa.ChunkedArray, nodes: str) -> None:
    row = int(np.flatnonzero(ids.to_pandas().duplicated())[0])
    raise InputError(
        f"{nodes}, row {row + 1}: id {ids[row].as_py()!r} is given to an earlier row too; "
        "remove one of the rows or give it an id of its own"
    )


def _by_chunk(find: Callable[[NDArray[np.int64]], Any], wanted: pa.ChunkedArray, out: NDArray[np.int32]) -> None:
    """Arrow keeps a long column in pieces; taking them one by one spares a copy of the whole."""
    start = 0
    for chunk in wanted.chunks:
        out[start : start + len(chunk)] = find(chunk.to_numpy())
        start += len(chunk)


def _find_dense(numbers: NDArray[np.int32], low: int, wanted: NDArray[np.int64]) -> NDArray[np.int32]:
    place = (wanted - low).view(np.uint64)  # what lies below ``low`` wraps to a place far above the last
    if not len(place) or place.max() < len(numbers):
        return numbers.take(place, mode="clip")  # unlike numbers[place], it lets the other thread work
    inside = place < len(numbers)
    found = np.full(len(wanted), -1, dtype=np.int32)
    found[inside] = numbers[place[inside]]
    return found


def _find_text(ids: pa.Array, wanted: pa.ChunkedArray, out: NDArray[np.int32]) -> None:
    out[:] = pc.fill_null(pc.index_in(wanted, value_set=ids), -1).to_numpy()
