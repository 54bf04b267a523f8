# ruff: noqa: PLR0917 - compiled kernels take their arguments by position
"""The operator on CPU cores: a compiled search for the kept pairs, then work on those pairs alone.

The pairs are listed if they are few; otherwise tiles of the matrix (`tiled`) are faster. This is decided by a sample of
rows, the same each time, so equal inputs give equal bits, whatever the number of threads. Arrays are prepared by NumPy:
for so little work, waking torch's threads takes longer than the work itself, and much longer on a busy machine.
It is hand-made because it is 50 to 80 times as fast as a matrix of all pairs (n = 19,717, five pairs a row).

Keys are stored in *tiles* of ``WIDTH`` keys, each a contiguous q × WIDTH array. The innermost loop runs over the keys
of a tile with operands at constant offsets from one pointer, which compilers turn into full-width fused multiply-adds.
q is padded with zeros to a multiple of ``DEPTH``, and the last tile with zero keys, which no threshold above 0 keeps.

A similarity is summed DEPTH terms at a time, so its float32 error is at most (DEPTH + q / DEPTH) · 2⁻²⁴ for unit rows
(1.0e-6 at q = 16, 1.2e-6 at q = 64; about a fifth of that in practice), and s_ij and s_ji agree to the bit.

Kernels release the interpreter's lock, work on a range of rows and write these rows only, so that the caller can run
them in threads. Those that apply the operator sum in column order, so the result does not depend on how rows are shared
among threads. Two habits make them fast. Sums are accumulated in local arrays by explicit loops: the compiler then
knows that they do not overlap the inputs, and keeps them in registers. Entries are read as ``z[i, k]`` and never
through a view ``z[i]``: numba counts the references to each view, and all threads would compete for that counter.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt
import torch
from numba.extending import intrinsic
from torch import Tensor

from gcnsl.execution import allowed_threads, compiled
from gcnsl.reconnection import tiled
from gcnsl.reconnection.problem import WIDTH, Averages, Gradients, Pairs, Problem

Result = TypeVar("Result")
Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]

DEPTH = 16
GROUP = 64
"""The number of keys whose hits are collected as the bits of one integer."""
BLOCK = 16
"""The number of rows compared with a tile while it is in the first-level cache."""
UNLIMITED = 1 << 62
IN_ORDER = {"contract"}
"""Floating-point liberties of the compiler: it may fuse a multiplication and an addition, but not reorder sums."""
ANY_ORDER = {"contract", "reassoc", "nsz"}
"""It may also reorder sums."""
DENSE_FRACTION = 1 / 10
"""The share of all pairs above which tiles are faster: a kept pair costs about as much as 10 entries of a tile."""
WORK_PER_PAIR = 1 << 10
"""The work on a listed pair, in multiply-adds that take as long. Most of it is waiting for memory."""
SHARES_PER_THREAD = 4
WORK_PER_SHARE = 1 << 23
"""Multiply-adds that are worth handing to another thread: about 200 µs."""
LONGEST_SHARE = 1 << 32
"""Multiply-adds after which a share ends, about half a second: a thread that works does not answer Ctrl-C."""


def forward(problem: Problem) -> Averages:
    """Return o, d and the kept pairs, listed if they are few."""
    z, keys, h = problem[:3]
    pairs = problem.pairs or _listed_if_few(problem)
    if pairs is None:
        return tiled.forward(problem)
    out, degree = h.new_empty(len(z), h.shape[1]), z.new_empty(len(z))
    _for_pairs(pairs, forward_rows, z, keys, h, out, degree)
    return Averages(out, degree, pairs)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given ∂L/∂o."""
    z, _, h = problem[:3]
    pairs = averages.pairs
    if pairs is None or not problem.square:
        return tiled.backward(problem, averages, grad)
    grad_z, grad_h, (scaled, offset) = torch.empty_like(z), torch.empty_like(h), tiled.scaled_gradient(grad, averages)
    _for_pairs(pairs, gradient_rows, z, h, scaled, offset, grad_z, grad_h)
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
        depth, n_tiles = DEPTH * -(-z.shape[1] // DEPTH), -(-len(keys) // WIDTH)
        rows, padded = _padded(z, len(z), depth), _padded(keys, n_tiles * WIDTH, depth)
        tiles = keys.new_empty(n_tiles, depth * WIDTH).numpy()
        tiles.reshape(n_tiles, depth, WIDTH)[:] = padded.reshape(n_tiles, WIDTH, depth).transpose(0, 2, 1)
        return cls(rows, tiles, rows.dtype.type(float(problem.threshold)), problem.square, problem.loops)

    def listed(self, limit: int, span: int = UNLIMITED) -> Pairs | None:
        """Find and list all pairs, or those in groups of ``span`` rows; return None if there are more than ``limit``.

        See `find_rows` for the groups.
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
            return find_rows(*search, found, part, most)

        results = in_threads(find, bounds)
        if found.sum() > most:
            return None
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([counts for counts, _ in results]))])
        columns = np.concatenate([columns for _, columns in results])
        start, columns = mirrored(start, columns) if self.square else (start, columns)
        return Pairs(torch.from_numpy(start), torch.from_numpy(columns)) if len(columns) <= limit else None


def _listed_if_few(problem: Problem) -> Pairs | None:
    degree = problem.degree
    if degree > DENSE_FRACTION * len(problem.keys) or degree * len(problem.z) > 2 * problem.room:
        return None
    return Search.of(problem).listed(problem.room)


def _for_pairs(pairs: Pairs, kernel: Callable[..., None], *tensors: Tensor) -> None:
    """Run a kernel on all rows, with about the same number of pairs per call."""
    start, *arrays = (part.numpy() for part in (*pairs, *tensors))
    n_pairs = int(start[-1])
    inner = np.searchsorted(start, n_pairs * shares(n_pairs * WORK_PER_PAIR)[1:-1])
    in_threads(lambda _, begin, end: kernel(begin, end, start, *arrays), np.array([0, *inner, len(start) - 1]))


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
    """The rows as an array (n × q), in torch's memory: it is aligned for vector instructions, NumPy's is not."""
    padded: Floats = z.new_zeros(n, q).numpy()
    padded[: z.shape[0], : z.shape[1]] = z.numpy()
    return padded


@compiled(fastmath=IN_ORDER)
def _similarities(row: Floats, tile: Floats, threshold: float, s: Floats) -> int:
    """Write the similarities of one row (q) with one tile of keys to ``s`` (WIDTH); return how many are kept."""
    for j in range(WIDTH):
        s[j] = 0
    hits = np.uint32(0)
    for depth in range(0, row.size, DEPTH):
        r = row[depth : depth + DEPTH]
        t = tile[depth * WIDTH : (depth + DEPTH) * WIDTH]
        r0, r1, r2, r3, r4, r5, r6, r7 = r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]
        r8, r9, r10, r11, r12, r13, r14, r15 = r[8], r[9], r[10], r[11], r[12], r[13], r[14], r[15]
        hits = np.uint32(0)
        for j in range(WIDTH):
            term = (
                (r0 * t[j] + r1 * t[WIDTH + j] + r2 * t[2 * WIDTH + j] + r3 * t[3 * WIDTH + j])
                + r4 * t[4 * WIDTH + j] + r5 * t[5 * WIDTH + j] + r6 * t[6 * WIDTH + j] + r7 * t[7 * WIDTH + j]
                + r8 * t[8 * WIDTH + j] + r9 * t[9 * WIDTH + j] + r10 * t[10 * WIDTH + j] + r11 * t[11 * WIDTH + j]
                + r12 * t[12 * WIDTH + j] + r13 * t[13 * WIDTH + j] + r14 * t[14 * WIDTH + j] + r15 * t[15 * WIDTH + j]
            )  # fmt: skip
            s[j] += term
            hits += np.uint32(s[j] >= threshold)
    return int(hits)


@intrinsic  # type: ignore[untyped-decorator]
def _lowest_bit(_: Any, bits: Any) -> Any:
    """Return the position of the lowest set bit: one instruction, for which numba has no public function."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        never_zero = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], never_zero)

    return bits(bits), generate


@compiled(fastmath=IN_ORDER)
def _append(s: Floats, threshold: float, left: int, lowest: int, columns: Ints, count: int) -> int:
    """Append the kept columns of the tile that starts at ``left``, if at least ``lowest``; return the new count.

    A plain loop over the keys would make a step with 30 to 100 pairs a row a fifth slower.
    """
    one = np.uint64(1)
    for group in range(0, WIDTH, GROUP):
        hits = np.uint64(0)
        for bit in range(GROUP):
            hits |= np.uint64(s[group + bit] >= threshold) << np.uint64(bit)
        while hits:
            column = left + group + np.int64(_lowest_bit(hits))
            columns[count] = column  # the next one overwrites it unless the count goes up
            count += int(column >= lowest)
            hits &= hits - one
    return count


@compiled(fastmath=IN_ORDER)
def _find_block(
    rows: Floats, tiles: Floats, threshold: float, first: int, last: int, square: bool, span: int,
    loops: bool, neighbours: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Write the kept columns of rows first..last to ``neighbours`` (BLOCK × m), ascending, and their ``counts``.

    See `find_rows` for the arguments.
    """
    s = np.empty(WIDTH, rows.dtype)
    counts[:] = 0
    group = first // span
    begin = (first if square else group * span) // WIDTH
    for tile in range(begin, min((group + 1) * span // WIDTH, tiles.shape[0])):
        left = tile * WIDTH
        for i in range(first, last):
            hits = _similarities(rows[i], tiles[tile], threshold, s)
            own = i - left
            if square and 0 <= own < WIDTH:
                s[own] = np.inf if loops and s[own] > 0 else -np.inf
                hits += 1
            if hits:
                listed = neighbours[i - first]
                counts[i - first] = _append(s, threshold, left, i if square else 0, listed, counts[i - first])


@compiled(fastmath=IN_ORDER)
def find_rows(
    rows: Floats, tiles: Floats, threshold: float, begin: int, end: int, square: bool, span: int,
    loops: bool, found: Ints, part: int, limit: int,
) -> tuple[Ints, Ints]:  # fmt: skip
    """Return the number of columns that each of the rows begin..end keeps, and the columns, row after row.

    A row is compared with the keys of its own group only: the first ``span`` rows and keys are one group, the next
    ``span`` another, and so on. ``span`` is a multiple of WIDTH, or `UNLIMITED`, which makes one group of all.

    If ``square``, keys are the rows, only columns j ≥ i are kept, and key i is row i itself: with ``loops`` every row
    but a zero row keeps it, without none does.

    Threads that search other ranges share ``found``, in which each counts its pairs, this one at ``part``. If the sum
    exceeds ``limit``, the search stops early and its result is incomplete.
    """
    counts = np.zeros(end - begin, np.int64)
    neighbours = np.empty((BLOCK, (min(tiles.shape[0], span // WIDTH) + 1) * WIDTH), np.int32)
    block_counts = np.empty(BLOCK, np.int64)
    columns = np.empty(1024, np.int32)
    size = 0
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        _find_block(rows, tiles, threshold, first, last, square, span, loops, neighbours, block_counts)
        total = size + block_counts[: last - first].sum()
        if total > columns.size:
            grown = np.empty(max(total, 2 * columns.size), np.int32)
            grown[:size] = columns[:size]
            columns = grown
        for i in range(first, last):
            count = block_counts[i - first]
            columns[size : size + count] = neighbours[i - first, :count]
            counts[i - begin] = count
            size += count
        found[part] = size
        if found.sum() > limit:
            break
    return counts, columns[:size]


@compiled(fastmath=IN_ORDER)
def mirrored(upper_start: Ints, upper: Ints) -> tuple[Ints, Ints]:
    """Given the pairs with i ≤ j, row after row, return the row starts (n + 1) and sorted columns of all pairs."""
    start = np.zeros_like(upper_start)
    n = start.size - 1
    for i in range(n):
        start[i + 1] += upper_start[i + 1] - upper_start[i]
        for e in range(upper_start[i], upper_start[i + 1]):
            if upper[e] != i:
                start[upper[e] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    columns = np.empty(start[n], upper.dtype)
    cursor = start[:-1].copy()
    for i in range(n):  # earlier rows have already added the columns j < i to row i, in ascending order
        for e in range(upper_start[i], upper_start[i + 1]):
            j = upper[e]
            columns[cursor[i]] = j
            cursor[i] += 1
            if j != i:
                columns[cursor[j]] = i
                cursor[j] += 1
    return start, columns


@compiled(fastmath=ANY_ORDER)
def forward_rows(
    begin: int, end: int, start: Ints, columns: Ints, z: Floats, keys: Floats, h: Floats, out: Floats, degree: Floats
) -> None:
    """Write d_i = Σ_j s_ij and o_i = Σ_j s_ij h_j / d_i; rows without kept columns get 0.

    Row i of begin..end has the kept columns ``columns[start[i] : start[i + 1]]``.
    """
    sums = np.empty(h.shape[1], h.dtype)
    for i in range(begin, end):
        total = 0.0
        sums[:] = 0
        for e in range(start[i], start[i + 1]):
            j = columns[e]
            s = _dot(z, i, keys, j)
            total += s
            for c in range(sums.size):
                sums[c] += s * h[j, c]
        degree[i] = total
        divisor = total if total > 0 else 1.0
        for c in range(sums.size):
            out[i, c] = sums[c] / divisor


@compiled(fastmath=ANY_ORDER)
def gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, h: Floats, grad: Floats, offset: Floats, grad_z: Floats, grad_h: Floats,
) -> None:  # fmt: skip
    """Write ∂L/∂z_i = Σ_j (δ_ij + δ_ji) z_j and ∂L/∂h_i = Σ_j s_ij g_j, where keys are z and pairs symmetric.

    δ_ij = g_i·h_j − c_i, where g and c are already divided by d.
    """
    of_z, of_h = np.empty(z.shape[1], z.dtype), np.empty(h.shape[1], h.dtype)
    for i in range(begin, end):
        of_z[:] = 0
        of_h[:] = 0
        for e in range(start[i], start[i + 1]):
            j = columns[e]
            s = _dot(z, i, z, j)
            delta = -offset[i] - offset[j]
            for c in range(of_h.size):
                delta += grad[i, c] * h[j, c] + h[i, c] * grad[j, c]
                of_h[c] += s * grad[j, c]
            for k in range(of_z.size):
                of_z[k] += delta * z[j, k]
        grad_z[i] = of_z
        grad_h[i] = of_h


@compiled(fastmath=ANY_ORDER)
def _dot(a: Floats, i: int, b: Floats, j: int) -> Any:
    """Return a_i·b_j."""
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[j, k]
    return total
