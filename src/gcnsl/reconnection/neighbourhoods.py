"""Who is kept by whom, row by row, on CPU threads: read from a list, or searched for and forgotten.

Both kinds hand their rows to a kernel of `numba_rows` as a `Part`. Arrays are laid out by NumPy: waking torch's own
threads for such little work takes longer than the work, and much longer on a busy machine.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from torch import Tensor

from gcnsl.reconnection import numba_search
from gcnsl.reconnection.numba_search import DEPTH, UNLIMITED, WIDTH, Floats, Ints
from gcnsl.reconnection.threads import in_threads, shares

STREAMED_ROWS = 128
"""Rows whose pairs a thread holds at a time when pairs are streamed."""
WORK_PER_PAIR = 1 << 10
"""Multiply-adds that would take as long as the work on a listed pair, most of which is waiting for memory."""

Part = tuple[int, int, Ints, Ints]
"""Rows begin..end, where the columns of each start, and the columns: what the kernels of `numba_rows` begin with."""


class Listed(NamedTuple):
    """Kept pairs in a list: row i keeps ``columns[start[i] : start[i + 1]]``."""

    start: Ints
    columns: Ints
    m: int
    """The number of columns there are."""

    def apply(self, work: Callable[[Part], None]) -> None:
        """Call ``work`` on all rows, a share of the pairs for each thread."""
        n, n_pairs = len(self.start) - 1, int(self.start[-1])
        share = shares(n_pairs * WORK_PER_PAIR)
        bounds = np.searchsorted(self.start, n_pairs * share[1:-1])
        in_threads(lambda _, a, b: work((a, b, self.start[a : b + 1], self.columns)), [0, *bounds.tolist(), n])

    def transposed(self) -> "Listed":
        """Return the same pairs by column: which rows keep each column."""
        n, n_pairs = len(self.start) - 1, int(self.start[-1])
        by_row = (np.ones(n_pairs, np.int8), self.columns[:n_pairs], self.start)
        by_column = scipy.sparse.csr_array(by_row, shape=(n, self.m)).tocsc()
        return Listed(by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32), n)


class Searched(NamedTuple):
    """Queries (n × q) and keys (tiles × q·WIDTH), q padded, as the search kernels want them."""

    rows: Floats
    tiles: Floats
    threshold: Any
    z: Tensor
    keys: Tensor

    @classmethod
    def of(cls, z: Tensor, keys: Tensor, threshold: float) -> "Searched":
        """Lay out queries z (n × q) and ``keys`` (m × q); where they are the same tensor, half the pairs tell all."""
        depth = -(-z.shape[1] // DEPTH) * DEPTH
        n_tiles = -(-len(keys) // WIDTH)
        rows = _padded(z, len(z), depth)
        tiles = _aligned(n_tiles, depth, WIDTH, like=keys)
        tiles[:] = _padded(keys, n_tiles * WIDTH, depth).reshape(n_tiles, WIDTH, depth).transpose(0, 2, 1)
        return cls(rows, tiles.reshape(n_tiles, depth * WIDTH), rows.dtype.type(threshold), z, keys)

    def transposed(self) -> "Searched":
        """Return the search with queries and keys exchanged: which queries keep each key."""
        return Searched.of(self.keys, self.z, self.threshold)

    def sampled_degree(self, sample: int) -> float:
        """Return the mean number of keys kept by about ``sample`` rows, evenly spread."""
        rows = np.ascontiguousarray(self.rows[:: max(1, len(self.rows) // sample)])
        return numba_search.count_rows(rows, self.tiles, self.threshold, 0, len(rows)) / len(rows)

    def listed(self, limit: int) -> Listed | None:
        """Find all pairs and list them, unless they are more than ``limit``."""
        n, square = len(self.rows), self.keys is self.z
        share = self._shares()
        bounds = n * (1 - np.sqrt(1 - share) if square else share)  # in a triangle, later rows are shorter
        found = np.zeros(len(share) - 1, np.int64)
        most = (limit + n) // 2 if square else limit  # all pairs are twice the triangle, less the diagonal

        def find(part: int, begin: int, end: int) -> tuple[Ints, Ints]:
            return numba_search.find_rows(self.rows, self.tiles, self.threshold, begin, end, square, found, part, most)

        results = in_threads(find, bounds.astype(np.int64).tolist())
        if found.sum() > most:
            return None
        start = _starts(np.concatenate([counts for counts, _ in results]))
        columns = np.concatenate([columns for _, columns in results])
        if square:
            start, columns = numba_search.mirrored(start, columns)
        return Listed(start, columns, len(self.keys)) if len(columns) <= limit else None

    def apply(self, work: Callable[[Part], None]) -> None:
        """Find the pairs of a few rows at a time and call ``work`` on them, a share of all rows for each thread."""

        def find_and_work(_: int, begin: int, end: int) -> None:
            for first in range(begin, end, STREAMED_ROWS):
                last = min(first + STREAMED_ROWS, end)
                counts, columns = numba_search.find_rows(
                    self.rows, self.tiles, self.threshold, first, last, False, np.zeros(1, np.int64), 0, UNLIMITED
                )
                work((first, last, _starts(counts), columns))

        in_threads(find_and_work, (len(self.rows) * self._shares()).astype(np.int64).tolist())

    def _shares(self) -> Floats:
        return shares(len(self.rows) * self.tiles.size)


def _padded(z: Tensor, n: int, q: int) -> Floats:
    padded = _aligned(n, q, like=z)
    padded[:, z.shape[1] :] = 0
    padded[z.shape[0] :] = 0
    padded[: z.shape[0], : z.shape[1]] = z.detach().numpy()
    return padded


def _aligned(*shape: int, like: Tensor) -> Floats:
    """Return an array at an address that vector instructions like, which is torch's habit and not NumPy's."""
    return like.new_empty(shape).detach().numpy()


def _starts(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
