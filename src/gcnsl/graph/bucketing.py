# ruff: noqa: PLR0917 - compiled functions take their arguments by position
# mypy: disable-error-code="untyped-decorator"
"""`simple_undirected` for millions of edges: the same result by compiled passes over memory, on two threads.

Both directions of every entry are packed into one integer each (source, target, which direction) and thrown into
buckets of neighbouring sources that fit a core's cache. There a radix sort brings equal ones together, and they are
merged. Everything is linear in the number of entries, and only the throwing reaches beyond the cache.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

_THREADS = 2
_BUCKET_ENTRIES = 2**14
_MOST_BUCKETS = 2**10
_LOCAL_BITS = 30
"""Of 64: one is the sign, 32 are the target's, one tells the direction."""
_DIGIT = 11
"""Bits that one pass of the sort looks at: its counters fit the innermost cache."""


def merge_edges(source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int) -> tuple[NDArray[np.int64], int]:
    """The distinct edges in both directions, sorted (2 × E), and the number of distinct entries given."""
    node_bits = max(1, int(num_nodes - 1).bit_length())
    wanted = min(_MOST_BUCKETS, max(1, 2 * len(source) // _BUCKET_ENTRIES))
    local_bits = min(_LOCAL_BITS, max(0, node_bits - max(0, int(wanted).bit_length() - 1)))
    buckets = ((num_nodes - 1) >> local_bits) + 1
    parts = np.linspace(0, len(source), _THREADS + 1).astype(np.int64)
    with ThreadPoolExecutor(_THREADS) as pool:

        def in_threads(work: Callable[[int], Any]) -> list[Any]:
            return list(pool.map(work, range(_THREADS)))

        counts = np.zeros((_THREADS, buckets), dtype=np.int64)
        in_threads(lambda k: _count(source, target, local_bits, parts[k], parts[k + 1], counts[k]))
        start = np.concatenate([[0], counts.sum(axis=0).cumsum()])
        place = start[:-1] + counts.cumsum(axis=0) - counts  # where each thread's share of each bucket begins
        # One buffer holds both rows of the result. The packed entries lie at its end until they become the second row.
        buffer = np.empty(4 * len(source), dtype=np.int64)
        packed = buffer[2 * len(source) :]
        in_threads(lambda k: _throw(source, target, local_bits, parts[k], parts[k + 1], place[k], packed))

        shifts = np.array([*range(1, 1 + node_bits, _DIGIT), *range(33, 33 + local_bits, _DIGIT)], dtype=np.int64)
        kept = np.zeros(buckets, dtype=np.int64)
        borders = np.searchsorted(start, parts * 2)
        borders[-1] = buckets
        given = in_threads(lambda k: _merge(packed, start, borders[k], borders[k + 1], shifts, kept))
        written = np.concatenate([[0], kept.cumsum()])
        edge_index = buffer[: 2 * written[-1]].reshape(2, -1)
        in_threads(lambda k: _write_sources(packed, start, written, borders[k], borders[k + 1], local_bits, edge_index))
    _write_targets(packed, start, written, edge_index)
    return edge_index, int(sum(given))


_compiled = numba.njit(nogil=True, cache=True)


@_compiled
def _count(source: Any, target: Any, local_bits: int, low: int, high: int, counts: Any) -> None:
    for e in range(low, high):
        counts[source[e] >> local_bits] += 1
        counts[target[e] >> local_bits] += 1


@_compiled
def _throw(source: Any, target: Any, local_bits: int, low: int, high: int, place: Any, packed: Any) -> None:
    """Pack (u, v) as [u within its bucket | v | 0] and (v, u) as [v within its bucket | u | 1]."""
    local = (1 << local_bits) - 1
    for e in range(low, high):
        u, v = np.int64(source[e]), np.int64(target[e])
        bucket = u >> local_bits
        packed[place[bucket]] = ((u & local) << 33) | (v << 1)
        place[bucket] += 1
        bucket = v >> local_bits
        packed[place[bucket]] = ((v & local) << 33) | (u << 1) | 1
        place[bucket] += 1


@_compiled
def _merge(packed: Any, start: Any, first: int, last: int, shifts: Any, kept: Any) -> int:
    """Sort each bucket, leave its distinct edges at its front, and count the distinct entries given among them."""
    largest = 0
    for bucket in range(first, last):
        largest = max(largest, start[bucket + 1] - start[bucket])
    scratch = np.empty(largest, np.int64)
    given = 0
    for bucket in range(first, last):
        own = packed[start[bucket] : start[bucket + 1]]
        ordered, other = own, scratch[: len(own)]
        for shift in shifts:
            _sort_by_digit(ordered, other, shift)
            ordered, other = other, ordered
        kept[bucket], as_given = _drop_repeats(ordered, own)
        given += as_given
    return given


@_compiled
def _sort_by_digit(values: Any, out: Any, shift: int) -> None:
    mask = (1 << _DIGIT) - 1
    places = np.zeros((1 << _DIGIT) + 1, np.int64)
    for value in values:
        places[((value >> shift) & mask) + 1] += 1
    for digit in range(1 << _DIGIT):
        places[digit + 1] += places[digit]
    for value in values:
        digit = (value >> shift) & mask
        out[places[digit]] = value
        places[digit] += 1


@_compiled
def _drop_repeats(ordered: Any, out: Any) -> tuple[int, int]:
    count = given = 0
    previous = np.int64(-1)
    was_given = False
    for value in ordered:
        edge = value >> 1
        if edge != previous:
            out[count] = edge
            count += 1
            previous, was_given = edge, False
        if not was_given and value & 1 == 0:
            was_given = True
            given += 1
    return count, given


@_compiled
def _write_sources(
    packed: Any, start: Any, written: Any, first: int, last: int, local_bits: int, edge_index: Any
) -> None:
    for bucket in range(first, last):
        base = bucket << local_bits
        for e in range(written[bucket + 1] - written[bucket]):
            edge_index[0, written[bucket] + e] = base + (packed[start[bucket] + e] >> 32)


@_compiled
def _write_targets(packed: Any, start: Any, written: Any, edge_index: Any) -> None:
    """In rising order every entry has been read before its place is taken: the result is never ahead of the buffer."""
    for bucket in range(len(start) - 1):
        for e in range(written[bucket + 1] - written[bucket]):
            edge_index[1, written[bucket] + e] = packed[start[bucket] + e] & 0xFFFFFFFF
