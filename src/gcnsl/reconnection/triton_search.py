# ruff: noqa: PLR0917 - kernels take their arguments by position
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""CUDA kernels that find the pairs that may be kept, on the tensor cores.

Unit rows are rounded to float16 and tiles of them multiplied with float32 accumulation. Rounding moves a product of two
entries by at most 2⁻¹⁰ + 2⁻²² of its size, and for unit rows the sizes sum to at most 1, so no similarity moves by more
than `MARGIN`, which also covers entries too small for float16 and the accumulation. Everything from ε − MARGIN on is a
candidate; the kernels that use candidates sum their similarity in float32 and leave out those below ε.

Candidates arrive in any order, from integer atomics; sorting makes the list, and all that is computed from it, the same
each time. To be sorted, the pair of row i and key j, of m keys, is the integer i·m + j.
"""

import triton
import triton.language as tl

MARGIN = 1.1e-3
TILE_KEYS = 64
"""Keys in a tile of the search: one for each bit of an integer."""


@triton.jit
def prepare_rows(
    rows, rounded, h, report, n, q, p, tolerance,
    ARE_KEYS: tl.constexpr, HAS_H: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Round unit rows (n × q) to float16, padded to Q columns, and look at them and at h (n × p) on the way.

    The report gets n − i for the first row i that is neither unit nor zero, of queries at 0 and of keys at 1, and for
    the first row of h that is not finite at 2.
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
    rows, keys, n, m, threshold, report, pairs, room, tiles_each,
    SQUARE: tl.constexpr, NO_PAIR: tl.constexpr, Q: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write the pairs of rounded rows (n × Q) and keys (m × Q) from the threshold on, counted in the report, at 3.

    One program compares BLOCK rows with ``tiles_each`` tiles of keys. With SQUARE it looks from the diagonal on and
    writes pairs both ways round. Once the count exceeds ``room`` nothing more is written or counted, but for what is
    under way.
    """
    count = report + 3
    top = tl.program_id(0) * BLOCK
    i = top + tl.arange(0, BLOCK)
    k = tl.arange(0, Q)
    first = tl.program_id(1) * tiles_each
    last = tl.minimum(first + tiles_each, tl.cdiv(m, TILE))
    if SQUARE:
        first = tl.maximum(first, top // TILE)
    # Adding 0 reads one value for the whole program; a load could show its threads different ones.
    there_is_room = tl.atomic_add(count, 0, sem="relaxed") <= room
    if first < last and there_is_room:
        row = tl.load(rows + i.to(tl.int64)[:, None] * Q + k[None, :], mask=i[:, None] < n, other=0.0)
        for tile in range(first, last):
            j = tile * TILE + tl.arange(0, TILE)
            key = tl.load(keys + j.to(tl.int64)[:, None] * Q + k[None, :], mask=j[:, None] < m, other=0.0)
            s = tl.dot(row, tl.trans(key))
            if there_is_room and tl.max(s) >= threshold:
                kept = (s >= threshold) & (i[:, None] < n) & (j[None, :] < m)
                if SQUARE:
                    kept = kept & (i[:, None] <= j[None, :])
                there_is_room = _append(kept, i, m, tile * TILE, count, pairs, room, SQUARE, NO_PAIR, TILE)


@triton.jit
def _append(kept, i, m, left, count, pairs, room, SQUARE: tl.constexpr, NO_PAIR: tl.constexpr, TILE: tl.constexpr):
    """Append the pairs of a tile that are kept; its keys begin at ``left``. Return whether there was room for all.

    A row's pairs become the bits of an integer, which are then written one by one, for all rows at once: few steps,
    where few are kept, and no work for each entry of the tile.
    """
    bit = tl.full([TILE], 1, tl.int64) << tl.arange(0, TILE).to(tl.int64)
    bits = tl.sum(tl.where(kept, bit[None, :], 0), axis=1)
    number = _count_bits(bits)
    each = 2 if SQUARE else 1
    slot = tl.atomic_add(count + tl.zeros_like(i), number * each, mask=number > 0, sem="relaxed")
    wide = i.to(pairs.dtype.element_ty)
    for step in range(tl.max(number)):
        lowest = bits & -bits
        exponent = (lowest.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 0xFF  # that of a power of two, plus 127
        j = (exponent + (left - 127)).to(pairs.dtype.element_ty)
        here = (step < number) & (slot + each * step + each <= room)
        tl.store(pairs + slot + each * step, wide * m + j, mask=here)
        if SQUARE:
            tl.store(pairs + slot + each * step + 1, tl.where(wide == j, NO_PAIR, j * m + wide), mask=here)
        bits = bits ^ lowest
    return tl.max(tl.where(number > 0, slot + number * each, 0)) <= room


@triton.jit
def _count_bits(bits):
    """Return how many bits are set: in pairs, in fours, in eights, then all eights summed by one product."""
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bits * 0x0101010101010101) >> 56).to(tl.int32) & 0x7F
