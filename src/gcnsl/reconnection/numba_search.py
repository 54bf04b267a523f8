# ruff: noqa: PLR0917 - compiled kernels take their arguments by position
"""Compiled CPU kernels that find the kept pairs.

Keys lie in *tiles* of ``WIDTH`` columns, each q × WIDTH and contiguous, so that the innermost loop runs over keys with
all operands at a constant distance from one pointer: the form compilers turn into full-width fused multiply-adds.
q is padded with zeros to a multiple of ``DEPTH`` and the last tile with zero keys, which no threshold above 0 keeps.

A similarity is summed DEPTH terms at a time, so its float32 error is at most (DEPTH + q / DEPTH) · 2⁻²⁴ for unit rows
(1.0e-6 at q = 16, 1.2e-6 at q = 64; about a fifth of that in practice), and s_ij and s_ji agree to the bit.

Kernels release the interpreter's lock and work on a range of rows; threads are the caller's business.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]
Kernel = TypeVar("Kernel", bound=Callable[..., object])

WIDTH = 128
DEPTH = 16
GROUP = 64
"""Keys whose hits are the bits of one number."""
BLOCK = 16
"""Rows that share a tile while it is in the first-level cache."""
UNLIMITED = 1 << 62


def compiled(reassociate: bool) -> Callable[[Kernel], Kernel]:
    """Compile on first use, cached on disk where there is a place for it; sums are reordered only if asked."""
    fastmath = {"contract", "reassoc", "nsz"} if reassociate else {"contract"}

    def compile_later(kernel: Kernel) -> Kernel:
        try:
            return cast(Kernel, numba.njit(nogil=True, fastmath=fastmath, cache=True)(kernel))
        except RuntimeError:  # numba found no writable place for its cache
            return cast(Kernel, numba.njit(nogil=True, fastmath=fastmath)(kernel))

    return compile_later


@compiled(reassociate=False)
def _similarities(row: Floats, tile: Floats, threshold: float, s: Floats) -> int:
    """Write the similarities of one row (q) to one tile of keys into ``s`` (WIDTH); return how many pass."""
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
    """The place of the lowest bit that is set: one instruction, for which numba has no public name."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        never_zero = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], never_zero)

    return bits(bits), generate


@compiled(reassociate=False)
def _append(s: Floats, threshold: float, left: int, lowest: int, columns: Ints, count: int) -> int:
    """Append the columns of the tile from ``left`` on that pass and are at least ``lowest``; return their new count."""
    one = np.uint64(1)
    for group in range(0, WIDTH, GROUP):
        hits = np.uint64(0)
        for bit in range(GROUP):
            hits |= np.uint64(s[group + bit] >= threshold) << np.uint64(bit)
        while hits:
            column = left + group + np.int64(_lowest_bit(hits))
            columns[count] = column  # overwritten by the next one unless this one counts
            count += column >= lowest
            hits &= hits - one
    return count


@compiled(reassociate=False)
def _find_block(
    rows: Floats, tiles: Floats, threshold: float, first: int, last: int, upper: bool, neighbours: Ints, counts: Ints
) -> None:
    """Write the kept columns of rows first..last into ``neighbours`` (BLOCK × m), ascending, and their ``counts``.

    With ``upper`` only columns from the diagonal on are kept.
    """
    s = np.empty(WIDTH, rows.dtype)
    counts[:] = 0
    for tile in range(first // WIDTH if upper else 0, tiles.shape[0]):
        left = tile * WIDTH
        for i in range(first, last):
            if _similarities(rows[i], tiles[tile], threshold, s):
                listed = neighbours[i - first]
                counts[i - first] = _append(s, threshold, left, i if upper else 0, listed, counts[i - first])


@compiled(reassociate=False)
def count_rows(rows: Floats, tiles: Floats, threshold: float, begin: int, end: int) -> int:
    """Return how many pairs rows begin..end keep."""
    s = np.empty(WIDTH, rows.dtype)
    total = 0
    for tile in range(tiles.shape[0]):
        for i in range(begin, end):
            total += _similarities(rows[i], tiles[tile], threshold, s)
    return total


@compiled(reassociate=False)
def find_rows(
    rows: Floats, tiles: Floats, threshold: float, begin: int, end: int, upper: bool, found: Ints, part: int, limit: int
) -> tuple[Ints, Ints]:
    """Return how many columns each of the rows begin..end keeps, and the columns, row after row.

    ``found`` counts the pairs of every range searched at the same time, this one's at ``part``: once they are more than
    ``limit`` together the search ends early, its result to be thrown away.
    """
    counts = np.zeros(end - begin, np.int64)
    neighbours = np.empty((BLOCK, (tiles.shape[0] + 1) * WIDTH), np.int32)
    block_counts = np.empty(BLOCK, np.int64)
    columns = np.empty(1024, np.int32)
    size = 0
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        _find_block(rows, tiles, threshold, first, last, upper, neighbours, block_counts)
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


@compiled(reassociate=False)
def mirrored(upper_start: Ints, upper: Ints) -> tuple[Ints, Ints]:
    """From the pairs i ≤ j, row after row, return those of both triangles: row starts (n + 1) and sorted columns."""
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
    for i in range(n):  # each row has its columns below the diagonal, from rows above it, before its own turn comes
        for e in range(upper_start[i], upper_start[i + 1]):
            j = upper[e]
            columns[cursor[i]] = j
            cursor[i] += 1
            if j != i:
                columns[cursor[j]] = i
                cursor[j] += 1
    return start, columns
