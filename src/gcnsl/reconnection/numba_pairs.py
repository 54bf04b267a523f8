"""The kept pairs of each row, on CPU threads: read from a list, or searched for a few rows at a time.

Both classes hand their rows to the kernels of `numba_rows` as a `Part`. Arrays are prepared by NumPy: for so little
work, waking torch's threads takes longer than the work itself, and much longer on a busy machine.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from torch import Tensor

from gcnsl.reconnection import numba_search
from gcnsl.reconnection.numba_search import BLOCK, DEPTH, UNLIMITED, WIDTH, Floats, Ints
from gcnsl.reconnection.threads import in_threads, interruptible, shares

STREAMED_ROWS = 128
"""The number of rows whose pairs a thread holds at a time when pairs are streamed."""
WORK_PER_PAIR = 1 << 10
"""The work on a listed pair, in multiply-adds that take as long. Most of it is waiting for memory."""

Part = tuple[int, int, Ints, Ints]
"""The first arguments of the kernels of `numba_rows`: rows begin..end, where the columns of each start, the columns."""


class Listed(NamedTuple):
    """Kept pairs in a list: row i keeps ``columns[start[i] : start[i + 1]]``."""

    start: Ints
    columns: Ints
    m: int
    """The number of keys."""

    def apply(self, work: Callable[[Part], None]) -> None:
        """Call ``work`` on all rows, with about the same number of pairs per call."""
        n, n_pairs = len(self.start) - 1, int(self.start[-1])
        share = shares(n_pairs * WORK_PER_PAIR)
        bounds = np.searchsorted(self.start, n_pairs * share[1:-1])
        in_threads(lambda _, a, b: work((a, b, self.start[a : b + 1], self.columns)), [0, *bounds.tolist(), n])

    def transposed(self) -> "Listed":
        """Return the same pairs by key: for each key, the rows that keep it."""
        n, n_pairs = len(self.start) - 1, int(self.start[-1])
        by_row = (np.ones(n_pairs, np.int8), self.columns[:n_pairs], self.start)
        by_column = scipy.sparse.csr_array(by_row, shape=(n, self.m)).tocsc()
        return Listed(by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32), n)


class Searched(NamedTuple):
    """Queries (n × q) and keys (tiles × q·WIDTH), with q padded, in the layout of the kernels of `numba_search`."""

    rows: Floats
    tiles: Floats
    threshold: Any
    z: Tensor
    keys: Tensor
    first_key: int
    """The key that is row 0, if rows are consecutive keys; else `UNLIMITED`."""
    loops: bool

    @classmethod
    def of(
        cls, z: Tensor, keys: Tensor, threshold: float, first_key: int | None = None, *, loops: bool = True
    ) -> "Searched":
        """Lay out queries z (n × q) and ``keys`` (m × q). If they are one object, half of the pairs are searched."""
        depth = -(-z.shape[1] // DEPTH) * DEPTH
        n_tiles = -(-len(keys) // WIDTH)
        rows = _padded(z, len(z), depth)
        tiles = _aligned(n_tiles, depth, WIDTH, like=keys)
        tiles[:] = _padded(keys, n_tiles * WIDTH, depth).reshape(n_tiles, WIDTH, depth).transpose(0, 2, 1)
        first_key = 0 if keys is z else UNLIMITED if first_key is None else first_key
        tiles = tiles.reshape(n_tiles, depth * WIDTH)
        return cls(rows, tiles, rows.dtype.type(threshold), z, keys, first_key, loops)

    def transposed(self) -> "Searched":
        """Return the search with queries and keys swapped: for each key, the queries that keep it."""
        first_key = None if self.first_key == UNLIMITED else -self.first_key
        return Searched.of(self.keys, self.z, self.threshold, first_key, loops=self.loops)

    def sampled_degree(self, sample: int) -> float:
        """Return the mean number of keys that a row keeps, in an evenly spaced sample of about ``sample`` rows."""
        rows = np.ascontiguousarray(self.rows[:: max(1, len(self.rows) // sample)])
        return numba_search.count_rows(rows, self.tiles, self.threshold, 0, len(rows)) / len(rows)

    def listed(self, limit: int, span: int = UNLIMITED) -> Listed | None:
        """Find and list all pairs, or those in groups of ``span`` rows; return None if there are more than ``limit``.

        See `numba_search.find_rows` for the groups.
        """
        n, square = len(self.rows), self.keys is self.z
        share = self._shares(span)
        triangle = square and span >= n
        ends = n * (1 - np.sqrt(1 - share) if triangle else share)  # later rows of a triangle are shorter
        bounds = [*(BLOCK * (ends[:-1] // BLOCK)).astype(int).tolist(), n]
        found = np.zeros(len(share) - 1, np.int64)
        most = (limit + n) // 2 if square else limit  # pairs with i <= j, of which those with i < j count twice

        def find(part: int, begin: int, end: int) -> tuple[Ints, Ints]:
            search = self.rows, self.tiles, self.threshold, begin, end, square, span, self.first_key, self.loops
            return numba_search.find_rows(*search, found, part, most)

        results = in_threads(find, bounds)
        if found.sum() > most:
            return None
        start = _starts(np.concatenate([counts for counts, _ in results]))
        columns = np.concatenate([columns for _, columns in results])
        if square:
            upper = start, columns
            start, columns = interruptible(lambda: numba_search.mirrored(*upper), len(columns) * WORK_PER_PAIR)
        return Listed(start, columns, len(self.keys)) if len(columns) <= limit else None

    def apply(self, work: Callable[[Part], None]) -> None:
        """Call ``work`` on all rows, a few at a time, as soon as their pairs are found."""

        def find_and_work(_: int, begin: int, end: int) -> None:
            for first in range(begin, end, STREAMED_ROWS):
                last = min(first + STREAMED_ROWS, end)
                search = self.rows, self.tiles, self.threshold, first, last, False, UNLIMITED
                counts, columns = numba_search.find_rows(
                    *search, self.first_key, self.loops, np.zeros(1, np.int64), 0, UNLIMITED
                )
                work((first, last, _starts(counts), columns))

        in_threads(find_and_work, (len(self.rows) * self._shares()).astype(np.int64).tolist())

    def _shares(self, span: int = UNLIMITED) -> Floats:
        n, depth = self.rows.shape
        return shares(n * depth * min(span, len(self.tiles) * WIDTH))


def _padded(z: Tensor, n: int, q: int) -> Floats:
    padded = _aligned(n, q, like=z)
    padded[:, z.shape[1] :] = 0
    padded[z.shape[0] :] = 0
    padded[: z.shape[0], : z.shape[1]] = z.detach().numpy()
    return padded


def _aligned(*shape: int, like: Tensor) -> Floats:
    """Return an array aligned for vector instructions: torch aligns its memory to 64 bytes, NumPy to 16."""
    return like.new_empty(shape).detach().numpy()


def _starts(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
