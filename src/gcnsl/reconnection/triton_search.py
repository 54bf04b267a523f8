# ruff: noqa: PLR0917 - kernels take their arguments by position
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""CUDA kernels that find the pairs that may be kept, on the tensor cores.

Unit rows are rounded to float16 and multiplied in tiles, with float32 accumulation. Rounding changes the product of two
entries by at most 2⁻¹⁰ + 2⁻²² of its size. For unit rows these sizes sum to at most 1, so no similarity changes by more
than `MARGIN`, which also covers the accumulation and entries too small for float16. All pairs with a similarity of at
least ε − MARGIN are candidates; the kernels that use them sum the similarity in float32 and leave out those below ε.

The pair of row i and key j, out of m keys, is stored as the integer i·m + j. Integer atomics give each pair its place,
so the order of candidates differs from run to run. Sorting them makes the result reproducible.
"""

import triton
import triton.language as tl

MARGIN = 1.1e-3
TILE_KEYS = 64
"""The number of keys in a tile of the search: one per bit of an integer."""


@triton.jit
def prepare_rows(
    rows, rounded, h, report, n, q, p, tolerance,
    ARE_KEYS: tl.constexpr, HAS_H: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Round unit rows (n × q) to float16, padded to Q columns, and check them and, with HAS_H, h (n × p).

    If row i is the first that has neither norm 1 nor norm 0, ``report[0]`` (queries) or ``report[1]`` (keys) becomes
    n − i. If row i of h is the first that is not finite, ``report[2]`` becomes n − i.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, Q)
    row = tl.load(rows + i[:, None] * q + k[None, :], mask=(i[:, None] < n) & (k[None, :] < q), other=0.0)
    tl.store(rounded + i[:, None] * Q + k[None, :], row.to(tl.float16), mask=i[:, None] < n)
    squared = tl.sum(row * row, axis=1)
    _report_first(report + (1 if ARE_KEYS else 0), i, n, (tl.abs(squared - 1.0) <= tolerance) | (squared == 0.0))
    if HAS_H:
        c = tl.arange(0, P)
        value = tl.load(h + i[:, None] * p + c[None, :], mask=(i[:, None] < n) & (c[None, :] < p), other=0.0)
        _report_first(report + 2, i, n, tl.min((tl.abs(value) < float("inf")).to(tl.int32), axis=1) == 1)


@triton.jit
def _report_first(report, i, n, good):
    worst = tl.max(tl.where(good | (i >= n), 0, n - i), axis=0)
    if worst > 0:
        tl.atomic_max(report, worst.to(tl.int32))


@triton.jit
def search(
    rows, keys, n, m, threshold, first_key, report, pairs, room, tiles_each,
    SQUARE: tl.constexpr, NO_PAIR: tl.constexpr, Q: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
    LEEWAY: tl.constexpr,
):  # fmt: skip
    """Write the pairs of rounded rows (n × Q) and keys (m × Q) that reach the threshold − LEEWAY.

    They are counted in ``report[3]``. One program compares BLOCK rows with ``tiles_each`` tiles of keys. With SQUARE it
    searches keys j ≥ i and writes a pair in both orders. Once the count exceeds ``room``, a program stops after its
    current tile. Row i is itself key ``first_key`` + i, which is always a candidate.
    """
    count = report + 3
    least = tl.load(threshold) - LEEWAY
    top = tl.program_id(0) * BLOCK
    i = top + tl.arange(0, BLOCK)
    k = tl.arange(0, Q)
    first = tl.program_id(1) * tiles_each
    last = tl.minimum(first + tiles_each, tl.cdiv(m, TILE))
    if SQUARE:
        first = tl.maximum(first, top // TILE)
    # Atomically adding 0 gives all threads of the program the same value, which a load does not guarantee.
    there_is_room = tl.atomic_add(count, 0, sem="relaxed") <= room
    if first < last and there_is_room:
        row = tl.load(rows + i.to(tl.int64)[:, None] * Q + k[None, :], mask=i[:, None] < n, other=0.0)
        for tile in range(first, last):
            j = tile * TILE + tl.arange(0, TILE)
            key = tl.load(keys + j.to(tl.int64)[:, None] * Q + k[None, :], mask=j[:, None] < m, other=0.0)
            s = tl.dot(row, tl.trans(key))
            shift = top + first_key - tile * TILE
            if (shift > -BLOCK) & (shift < TILE):  # the tile has loops
                s = tl.where((i + first_key)[:, None] == j[None, :], 1.0, s)
            if there_is_room and tl.max(s) >= least:
                kept = (s >= least) & (i[:, None] < n) & (j[None, :] < m)
                if SQUARE:
                    kept = kept & (i[:, None] <= j[None, :])
                there_is_room = _append(kept, i, m, tile * TILE, count, pairs, room, SQUARE, NO_PAIR, TILE)


@triton.jit
def _append(kept, i, m, left, count, pairs, room, SQUARE: tl.constexpr, NO_PAIR: tl.constexpr, TILE: tl.constexpr):
    """Append the kept pairs of a tile whose keys begin at ``left``. Return whether there was room for all.

    The kept keys of each row become the bits of an integer. Each step then writes one pair of every row, so the number
    of steps is the largest number of pairs in a row, not the number of keys in a tile.
    """
    bit = tl.full([TILE], 1, tl.int64) << tl.arange(0, TILE).to(tl.int64)
    bits = tl.sum(tl.where(kept, bit[None, :], 0), axis=1)
    number = _count_bits(bits)
    each = 2 if SQUARE else 1
    slot = tl.atomic_add(count + tl.zeros_like(i), number * each, mask=number > 0, sem="relaxed")
    wide = i.to(pairs.dtype.element_ty)
    for step in range(tl.max(number)):
        lowest = bits & -bits
        exponent = (lowest.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 0xFF  # of a power of two, biased by 127
        j = (exponent + (left - 127)).to(pairs.dtype.element_ty)
        here = (step < number) & (slot + each * step + each <= room)
        tl.store(pairs + slot + each * step, wide * m + j, mask=here)
        if SQUARE:
            tl.store(pairs + slot + each * step + 1, tl.where(wide == j, NO_PAIR, j * m + wide), mask=here)
        bits = bits ^ lowest
    return tl.max(tl.where(number > 0, slot + number * each, 0)) <= room


@triton.jit
def _count_bits(bits):
    """Return the number of set bits: of each 2 bits, of each 4, of each 8, and their sum by one multiplication."""
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56).to(tl.int32) & 0x7F
