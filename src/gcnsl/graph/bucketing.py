# ruff: noqa: PLR0917 - compiled functions take their arguments by position
"""The compiled counterpart of :func:`gcnsl.graph.simple_edges.merge_by_matrices`, for millions of edges.

With it, 500,000 nodes and 5,000,000 edges load in 0.30 s, and without it in 0.55 s (two cores).

Each direction of an entry is packed into one integer (source, target, which direction) and written to a bucket of
neighbouring sources that fits into a core's cache. There, a radix sort brings equal integers together, and repeats are
dropped. All passes are linear in the number of entries, run on two threads, and stay within the cache except for the
one that fills the buckets.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnsl.compiled import compiled

_THREADS = 2
_BUCKET_ENTRIES = 2**14
_MOST_BUCKETS = 2**10
_LOCAL_BITS = 30
"""Largest number of bits for a source within its bucket. Of 64, 32 hold the target, 1 the direction, 1 the sign."""
_DIGIT = 11
"""Number of bits that one pass of the radix sort looks at: its counters fit into the innermost cache."""


def merge_edges(source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int) -> tuple[NDArray[np.int64], int]:
    """Return both directions of the distinct edges, sorted (2 × E), and the number of distinct entries."""
    node_bits = max(1, int(num_nodes - 1).bit_length())
    wanted = min(_MOST_BUCKETS, max(1, 2 * len(source) // _BUCKET_ENTRIES))
    local_bits = min(_LOCAL_BITS, max(0, node_bits - wanted.bit_length() + 1))
    buckets = ((num_nodes - 1) >> local_bits) + 1
    parts = np.linspace(0, len(source), _THREADS + 1).astype(np.int64)
    with ThreadPoolExecutor(_THREADS) as pool:

        def in_threads(work: Callable[[int], Any]) -> list[Any]:
            return list(pool.map(work, range(_THREADS)))

        counts = np.zeros((_THREADS, buckets), dtype=np.int64)
        in_threads(lambda k: _count(source, target, local_bits, parts[k], parts[k + 1], counts[k]))
        start = np.concatenate([[0], counts.sum(axis=0).cumsum()])
        place = start[:-1] + counts.cumsum(axis=0) - counts  # where each thread's part of each bucket begins
        # One buffer holds both rows of the result; its end holds the packed entries until the second row replaces them.
        buffer = np.empty(4 * len(source), dtype=np.int64)
        packed = buffer[2 * len(source) :]
        in_threads(lambda k: _fill(source, target, local_bits, parts[k], parts[k + 1], place[k], packed))

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


@compiled()
def _count(source: Any, target: Any, local_bits: int, low: int, high: int, counts: Any) -> None:
    for e in range(low, high):
        counts[source[e] >> local_bits] += 1
        counts[target[e] >> local_bits] += 1


@compiled()
def _fill(source: Any, target: Any, local_bits: int, low: int, high: int, place: Any, packed: Any) -> None:
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


@compiled()
def _merge(packed: Any, start: Any, first: int, last: int, shifts: Any, kept: Any) -> int:
    """Sort each bucket, write its distinct edges to its front, and return the number of distinct entries as given."""
    scratch = np.empty(np.max(np.diff(start)), np.int64)
    given = 0
    for bucket in range(first, last):
        own = packed[start[bucket] : start[bucket + 1]]
        ordered, other = own, scratch[: len(own)]
        for shift in shifts:
            _sort_by_digit(ordered, other, shift)
            ordered, other = other, ordered
        previous = np.int64(-1)
        was_given = False
        count = 0
        for value in ordered:
            edge = value >> 1
            if edge != previous:
                own[count] = edge
                count += 1
                previous, was_given = edge, False
            if not was_given and value & 1 == 0:
                was_given = True
                given += 1
        kept[bucket] = count
    return given


@compiled()
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


@compiled()
def _write_sources(
    packed: Any, start: Any, written: Any, first: int, last: int, local_bits: int, edge_index: Any
) -> None:
    for bucket in range(first, last):
        base = bucket << local_bits
        for e in range(written[bucket + 1] - written[bucket]):
            edge_index[0, written[bucket] + e] = base + (packed[start[bucket] + e] >> 32)


@compiled()
def _write_targets(packed: Any, start: Any, written: Any, edge_index: Any) -> None:
    """Replace the packed entries in rising order: an entry is always read before its place is written to."""
    for bucket in range(len(start) - 1):
        for e in range(written[bucket + 1] - written[bucket]):
            edge_index[1, written[bucket] + e] = packed[start[bucket] + e] & 0xFFFFFFFF
