"""The operator on CPU cores: a compiled search for the kept pairs, then work on those pairs alone.

The pairs are listed if they are few; otherwise tiles of the matrix (`tiled`) are faster. This is decided by a sample of
rows, the same each time, so equal inputs give equal bits, whatever the number of threads. Arrays are prepared by NumPy:
for so little work, waking torch's threads takes longer than the work itself, and much longer on a busy machine.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from gcnsl.execution import allowed_threads
from gcnsl.reconnection import numba_kernels, tiled
from gcnsl.reconnection.numba_kernels import BLOCK, DEPTH, UNLIMITED, WIDTH, Floats, Ints
from gcnsl.reconnection.problem import Averages, Gradients, Pairs, Problem

DENSE_FRACTION = 1 / 10
"""The share of all pairs above which tiles are faster: a kept pair costs about as much as 10 entries of a tile."""
SAMPLED_ROWS = 64
WORK_PER_PAIR = 1 << 10
"""The work on a listed pair, in multiply-adds that take as long. Most of it is waiting for memory."""
SHARES_PER_THREAD = 4
WORK_PER_SHARE = 1 << 23
"""Multiply-adds that are worth handing to another thread: about 200 µs."""
LONGEST_SHARE = 1 << 32
"""Multiply-adds after which a share ends, about half a second: a thread that works does not answer Ctrl-C."""

Result = TypeVar("Result")


def forward(problem: Problem) -> Averages:
    """Return o, d and the kept pairs, listed if they are few."""
    z, keys, h = problem[:3]
    pairs = problem.known or _listed_if_few(problem)
    if pairs is None:
        return tiled.forward(problem)
    out, degree = h.new_empty(len(z), h.shape[1]), z.new_empty(len(z))
    arrays = _arrays(*pairs, z, keys, h, out, degree)
    _for_pairs(pairs, lambda begin, end: numba_kernels.forward_rows(begin, end, *arrays))
    return Averages(out, degree, pairs)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given ∂L/∂o."""
    z, _, h = problem[:3]
    pairs = averages.pairs
    if pairs is None or not problem.square:
        return tiled.backward(problem, averages, grad)
    grad_z, grad_h, (scaled, offset) = torch.empty_like(z), torch.empty_like(h), tiled.scaled_gradient(grad, averages)
    arrays = _arrays(*pairs, z, h, scaled, offset, grad_z, grad_h)
    _for_pairs(pairs, lambda begin, end: numba_kernels.gradient_rows(begin, end, *arrays))
    return Gradients(grad_z, grad_z, grad_h)


def find(problem: Problem) -> Tensor:
    """Return all kept pairs as rows and columns (2 × E, int64), sorted by row, then column."""
    pairs = Search.of(problem).listed(UNLIMITED)
    assert pairs is not None
    rows = torch.repeat_interleave(torch.arange(len(problem.z)), pairs.start.diff())
    return torch.stack([rows, pairs.columns.long()])


class Search(NamedTuple):
    """Rows (n × q) and keys (tiles × q·WIDTH), with q padded, in the layout of the kernels."""

    rows: Floats
    tiles: Floats
    threshold: Any
    square: bool
    """Whether keys are the rows, so that half of the pairs need not be searched."""
    loops: bool

    @classmethod
    def of(cls, problem: Problem) -> "Search":
        """Lay out the rows and keys of a problem."""
        z, keys = problem[:2]
        depth = -(-z.shape[1] // DEPTH) * DEPTH
        n_tiles = -(-len(keys) // WIDTH)
        rows, tiles = _padded(z, len(z), depth), _aligned(n_tiles, depth, WIDTH, like=keys)
        tiles[:] = _padded(keys, n_tiles * WIDTH, depth).reshape(n_tiles, WIDTH, depth).transpose(0, 2, 1)
        tiles = tiles.reshape(n_tiles, depth * WIDTH)
        return cls(rows, tiles, rows.dtype.type(float(problem.threshold)), problem.square, problem.loops)

    def listed(self, limit: int, span: int = UNLIMITED) -> Pairs | None:
        """Find and list all pairs, or those in groups of ``span`` rows; return None if there are more than ``limit``.

        See `numba_kernels.find_rows` for the groups.
        """
        n, depth = self.rows.shape
        share = shares(n * depth * min(span, len(self.tiles) * WIDTH))
        triangle = self.square and span >= n
        ends = n * (1 - np.sqrt(1 - share) if triangle else share)  # later rows of a triangle are shorter
        bounds = np.append(BLOCK * (ends[:-1] // BLOCK), n).astype(np.int64)
        found = np.zeros(len(share) - 1, np.int64)
        most = (limit + n) // 2 if self.square else limit  # pairs with i <= j, of which those with i < j count twice

        def find(part: int, begin: int, end: int) -> tuple[Ints, Ints]:
            search = self.rows, self.tiles, self.threshold, begin, end, self.square, span, self.loops
            return numba_kernels.find_rows(*search, found, part, most)

        results = in_threads(find, bounds)
        if found.sum() > most:
            return None
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([counts for counts, _ in results]))])
        columns = np.concatenate([columns for _, columns in results])
        if self.square:
            start, columns = numba_kernels.mirrored(start, columns)
        return Pairs(torch.from_numpy(start), torch.from_numpy(columns)) if len(columns) <= limit else None


def _listed_if_few(problem: Problem) -> Pairs | None:
    sample = problem.z[:: max(1, len(problem.z) // SAMPLED_ROWS)]
    degree = int((sample @ problem.keys.T >= problem.threshold).sum()) / len(sample)
    if degree > DENSE_FRACTION * len(problem.keys) or degree * len(problem.z) > 2 * problem.room:
        return None
    return Search.of(problem).listed(problem.room)


def _for_pairs(pairs: Pairs, work: Callable[[int, int], None]) -> None:
    """Call ``work`` on all rows, with about the same number of pairs per call."""
    start = pairs.start.numpy()
    n_pairs = int(start[-1])
    inner = np.searchsorted(start, n_pairs * shares(n_pairs * WORK_PER_PAIR)[1:-1])
    in_threads(lambda _, begin, end: work(begin, end), np.array([0, *inner, len(start) - 1]))


def shares(work: int) -> Floats:
    """Return bounds from 0 to 1 that cut ``work`` multiply-adds into a few shares per thread, so that none idles."""
    usual = allowed_threads() * SHARES_PER_THREAD
    return np.linspace(0, 1, max(1, min(usual, work // WORK_PER_SHARE), work // LONGEST_SHARE) + 1)


def in_threads(work: Callable[[int, int, int], Result], bounds: Ints) -> list[Result]:
    """Call work(part, begin, end) for each pair of consecutive bounds, in as many threads as torch may use.

    These are Python's threads, since kernels release the interpreter's lock: numba's own end the process where it forks
    or where two threads call it, depending on the library behind them. The calling thread only waits, so that it
    answers Ctrl-C. After an error or Ctrl-C no part is begun.
    """
    parts = [(part, int(begin), int(end)) for part, (begin, end) in enumerate(pairwise(bounds))]
    threads = min(allowed_threads(), len(parts))
    try:
        if threads == 1:
            return [work(*part) for part in parts]
        return list(_pool(threads).map(lambda part: work(*part), parts))
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):  # numba wraps a KeyboardInterrupt
            cause = cause.__cause__
        raise cause or error from None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def _padded(z: Tensor, n: int, q: int) -> Floats:
    padded = _aligned(n, q, like=z)
    padded[:, z.shape[1] :] = 0
    padded[z.shape[0] :] = 0
    padded[: z.shape[0], : z.shape[1]] = z.numpy()
    return padded


def _aligned(*shape: int, like: Tensor) -> Floats:
    """Return an array aligned for vector instructions: torch aligns its memory to 64 bytes, NumPy to 16."""
    return like.new_empty(shape).numpy()


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.numpy() for tensor in tensors]
