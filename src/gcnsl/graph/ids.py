"""The caller's node ids, integers or strings: checked, and converted to node numbers 0 … n - 1."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.graph.arrays import as_array
from gcnsl.graph.table_reading import Table

_STRING = pa.large_string()
"""The string type that pandas writes; Arrow converts its shorter one to it without copying the characters."""

_DENSE = 16
"""Integer ids are looked up in an array if it needs at most this many entries per node, else in a hash table."""


def check_ids(node_ids: Any, num_nodes: int) -> NDArray[Any]:
    """Return the caller's names for the nodes (n): int64 if all are integers that fit, else as text.

    No name may be missing, and no two may be the same.
    """
    values = as_array(node_ids, "node_ids")
    if values.shape != (num_nodes,):
        raise InputError(f"node_ids has shape {values.shape}: give {num_nodes} entries, one per node")
    missing = np.flatnonzero(pd.isna(values))
    if len(missing):
        raise InputError(f"node_ids[{missing[0]}] is missing: give every node an id")
    ids = _integers(values)
    if ids is None:
        ids = np.array([_text(value) for value in values])
    index = pd.Index(ids)
    if not index.is_unique:
        raise InputError(f"node_ids has {index[index.duplicated()].tolist()[0]!r} twice: give every node its own id")
    return ids


def _text(value: Any) -> str:
    """A value as text that can be written to a file; NumPy would drop NUL characters at its end."""
    content = value if isinstance(value, bytes) else str(value).encode(errors="backslashreplace")
    return content.decode(errors="backslashreplace").replace("\0", "\\x00")


def _integers(values: NDArray[Any]) -> NDArray[np.int64] | None:
    """The values as int64, or ``None`` if they are anything but integers of that range."""
    kinds = {type(value) for value in values} if values.dtype.kind == "O" else {values.dtype.type}
    if not all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return None
    low, high = min(values, default=0), max(values, default=0)
    bounds = np.iinfo(np.int64)
    return values.astype(np.int64) if bounds.min <= low and high <= bounds.max else None


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
    ends = np.empty((2, edges.arrow.num_rows), dtype=np.int32)

    def write(values: pa.ChunkedArray, out: NDArray[np.int32]) -> None:
        start = 0
        # Joining the chunks of a long column would copy it, but Arrow hashes its strings again for each call.
        for chunk in values.chunks if pa.types.is_int64(values.type) else [values]:
            out[start : start + len(chunk)] = find(chunk)
            start += len(chunk)

    with ThreadPoolExecutor(2) as pool:  # Arrow and NumPy release the interpreter's lock
        list(pool.map(write, wanted, ends))
    for column, values, numbers in zip(columns, wanted, ends, strict=True):
        unknown = numbers < 0
        if unknown.any():
            value = values.filter(unknown)[0].as_py()
            raise InputError(
                f"{edges.place(unknown, column)} is {value!r}, which is not an id in {nodes} "
                f"({int(unknown.sum())} such row(s)): add the node or drop the edge"
            )
    return ends


def _index(ids: pa.ChunkedArray) -> Callable[[pa.Array], Any] | None:
    """Return a function from ids to node numbers, -1 for an unknown id; ``None`` if two nodes have the same id."""
    if not pa.types.is_int64(ids.type):
        known = pa.concat_arrays(ids.chunks)
        unique = pc.count_distinct(ids).as_py() == len(ids)
        return (lambda column: pc.fill_null(pc.index_in(column, value_set=known), -1)) if unique else None
    values = ids.to_numpy()
    low, high = int(values.min()), int(values.max())
    if high - low >= _DENSE * len(values):
        index = pd.Index(values)
        return (lambda chunk: index.get_indexer(chunk.to_numpy())) if index.is_unique else None
    numbers, order = np.full(high - low + 1, -1, dtype=np.int32), np.arange(len(values), dtype=np.int32)
    numbers[values - low] = order
    unique = np.array_equal(numbers[values - low], order)  # else a later row has overwritten an earlier one
    return partial(_find_dense, numbers, low) if unique else None


def _find_dense(numbers: NDArray[np.int32], low: int, chunk: pa.Array) -> NDArray[np.int32]:
    place = (chunk.to_numpy() - low).view(np.uint64)  # ids below ``low`` wrap around to places beyond the last one
    found: NDArray[np.int32] = numbers.take(place, mode="clip")  # unlike numbers[place], it releases Python's lock
    if len(place) and place.max() >= len(numbers):
        found[place >= len(numbers)] = -1
    return found
