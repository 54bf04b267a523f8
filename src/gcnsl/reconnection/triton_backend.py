# ruff: noqa: PLR0917 - kernels take their arguments by position
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""The operator on a GPU: the pairs that may be kept are searched for and listed, then visited one by one.

The host waits for the device once more than for the checks of the input: for the number of candidates. Small graphs,
recorded work and problems with too many candidates are left to `tiled`.

**The search** finds the pairs that may be kept on the tensor cores. Unit rows are rounded to float16 and multiplied in
tiles, with float32 accumulation. Rounding changes the product of two entries by at most 2⁻¹⁰ + 2⁻²² of its size. For
unit rows these sizes sum to at most 1, so no similarity changes by more than `MARGIN`, which also covers the
accumulation and entries too small for float16. All pairs with a similarity of at least ε − MARGIN, less what a squared
norm may fall short of 1, are candidates, so that every row that is not zero is one of its own. The pair of row i and
key j, out of m keys, is stored as the integer i·m + j. Integer atomics give each pair its place, so the order of
candidates differs from run to run. Sorting them makes the result reproducible.

**Listed rows.** One program works on one row, BLOCK of its candidates at a time, and writes that row only. There are no
floating-point atomics, so the same list gives the same bits. Candidates whose similarity, summed in float32, is below
the threshold are left out.

It is hand-made because nothing else comes near: at a million nodes with five neighbours each, a step takes 112 ms on an
H200, where the similarities alone would need 3.6 TiB. Row i is itself key ``first_key`` + i, which is beyond all keys
if rows are not keys; with LOOPS it is kept unless it is zero, without it is left out.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad
from triton import cdiv, next_power_of_2

from gcnsl.execution import is_recorded
from gcnsl.reconnection import tiled
from gcnsl.reconnection.problem import Averages, Gradients, Pairs, Problem

find = tiled.find
SEARCH_ROWS = 64
SEARCH_PROGRAMS = 8192
"""The number of programs of a large search: many per processor, so that none idles."""
SMALL_PAIRS = 4096**2
"""Up to this many pairs, computing all similarities takes less time than launching the kernels of a search."""
MOST_CANDIDATES = 2**31 - 2**24
"""The largest list. Programs of the search may count some candidates beyond it, in an integer of 32 bits."""
ROW_ENTRIES = 256
"""Entries of h that one program loads at a time."""
BEYOND_ALL_KEYS = 1 << 30
"""Where the key that is row 0 is, if rows are not keys."""
MARGIN = 1.1e-3
TILE_KEYS = 64
"""The number of keys in a tile of the search: one per bit of an integer."""


def forward(problem: Problem) -> Averages:
    """Return o, d and the candidate pairs, if they are listed."""
    z, keys, h, _ = problem[:4]
    (n, q), (m, p) = z.shape, h.shape
    if is_recorded() or n * m <= SMALL_PAIRS:
        return tiled.forward(problem)
    with _device_of(z):
        threshold = _in_memory(problem)
        listed = candidates(problem, threshold)
        if listed is None:
            return tiled.forward(problem)
        start = torch.searchsorted(listed, m * torch.arange(n + 1, dtype=listed.dtype, device=z.device))
        pairs = Pairs(start, (listed % m).int())
        del listed  # frees memory for the results
        out, degree = h.new_empty(n, p), z.new_empty(n)
        forward_rows[(n,)](
            *pairs, z, keys, h, out, degree, q, p, threshold, _first_key(problem),
            LOOPS=problem.loops, **_row_shape(q, p),
        )  # fmt: skip
        return Averages(out, degree, pairs)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given ∂L/∂o."""
    z, _, h = problem[:3]
    out, degree, pairs = averages
    if pairs is None or not problem.square:
        return tiled.backward(problem, averages, grad)
    (n, q), p = z.shape, h.shape[1]
    grad_z, grad_h = torch.empty_like(z), torch.empty_like(h)
    with _device_of(z):
        gradient_rows[(n,)](
            *pairs, z, h, grad, out, degree, grad_z, grad_h, q, p, _in_memory(problem),
            LOOPS=problem.loops, **_row_shape(q, p),
        )  # fmt: skip
    return Gradients(grad_z, grad_z, grad_h)


def candidates(problem: Problem, threshold: Tensor) -> Tensor | None:
    """Return the candidates i·m + j, sorted, or None if there are more than there is room for.

    If keys are the rows themselves, a pair comes in both orders; the second copy of a loop is the largest integer,
    which is no pair.
    """
    z, keys = problem[:2]
    n, m, room = len(z), len(keys), min(problem.room, MOST_CANDIDATES)
    rows = _rounded(z)
    key_rows = rows if problem.square else _rounded(keys)
    dtype = torch.int32 if n * m < 2**31 - 1 else torch.int64  # sorting int32 takes half the time
    found, count = torch.empty(room, dtype=dtype, device=z.device), torch.zeros(1, dtype=torch.int32, device=z.device)
    row_blocks, tiles = cdiv(n, SEARCH_ROWS), cdiv(m, TILE_KEYS)
    each = cdiv(row_blocks * tiles, SEARCH_PROGRAMS)
    search[(row_blocks, cdiv(tiles, each))](
        rows, key_rows, n, m, threshold, count, found, room, each,
        SQUARE=problem.square, NO_PAIR=torch.iinfo(dtype).max,
        Q=rows.shape[1], BLOCK=SEARCH_ROWS, TILE=TILE_KEYS, LEEWAY=MARGIN + problem.tolerance, num_warps=4,
    )  # fmt: skip
    number = int(count)
    return torch.sort(found[:number]).values if number <= room else None


def _rounded(rows: Tensor) -> Tensor:
    """Return unit rows in float16, padded with zeros to a width that tensor cores accept."""
    return pad(rows, (0, _padded(rows.shape[1]) - rows.shape[1])).half()


def _in_memory(problem: Problem) -> Tensor:
    """Return the threshold in the device's memory, where kernels read it."""
    if isinstance(problem.threshold, Tensor):
        return problem.threshold
    return torch.full((1,), problem.threshold, dtype=torch.float32, device=problem.z.device)


def _first_key(problem: Problem) -> int:
    return 0 if problem.square else BEYOND_ALL_KEYS


def _padded(width: int) -> int:
    """Return the next width that tensor cores accept: a power of two, at least 16."""
    return max(16, int(next_power_of_2(width)))


@cache
def _row_shape(q: int, p: int) -> dict[str, int]:
    return {"Q": _padded(q), "P": _padded(p), "BLOCK": max(1, ROW_ENTRIES // _padded(p)), "num_warps": 1}


def _device_of(z: Tensor) -> AbstractContextManager[object]:
    """Make z's device current, since kernels are launched on the current device."""
    return torch.cuda.device(z.device) if z.is_cuda else nullcontext()


@triton.jit
def search(
    rows, keys, n, m, threshold, count, pairs, room, tiles_each,
    SQUARE: tl.constexpr, NO_PAIR: tl.constexpr, Q: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
    LEEWAY: tl.constexpr,
):  # fmt: skip
    """Write the pairs of rounded rows (n × Q) and keys (m × Q) that reach the threshold − LEEWAY.

    They are counted in ``count``. One program compares BLOCK rows with ``tiles_each`` tiles of keys. With SQUARE it
    searches keys j ≥ i and writes a pair in both orders. Once the count exceeds ``room``, a program stops after its
    current tile.
    """
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


@triton.jit
def forward_rows(
    start, columns, z, keys, h, out, degree, q, p, threshold, first_key,
    LOOPS: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write d_i = Σ_j s_ij and o_i = Σ_j s_ij h_j / d_i; rows without kept columns get 0."""
    i = tl.program_id(0).to(tl.int64)
    least = tl.load(threshold)
    k, c = tl.arange(0, Q), tl.arange(0, P)
    row = tl.load(z + i * q + k, mask=k < q, other=0.0)
    total = tl.zeros([BLOCK], tl.float32)
    average = tl.zeros([BLOCK, P], tl.float32)
    first, end = tl.load(start + i), tl.load(start + i + 1)
    for e_first in range(first, end, BLOCK):
        e = e_first + tl.arange(0, BLOCK)
        valid = (e < end)[:, None]
        j = tl.load(columns + e, mask=e < end, other=0).to(tl.int64)
        key = tl.load(keys + j[:, None] * q + k[None, :], mask=valid & (k[None, :] < q), other=0.0)
        s = tl.sum(key * row[None, :], axis=1)
        s = tl.where(_is_kept(s, j == i + first_key, least, LOOPS), s, 0.0)
        total += s
        average += s[:, None] * tl.load(h + j[:, None] * p + c[None, :], mask=valid & (c[None, :] < p), other=0.0)
    d = tl.sum(total, axis=0)
    tl.store(degree + i, d)
    tl.store(out + i * p + c, tl.sum(average, axis=0) / tl.where(d > 0, d, 1.0), mask=c < p)


@triton.jit
def _is_kept(s, is_loop, least, LOOPS: tl.constexpr):
    return tl.where(is_loop, s > 0, s >= least) if LOOPS else (s >= least) & ~is_loop


@triton.jit
def gradient_rows(
    start, columns, z, h, grad, out, degree, grad_z, grad_h, q, p, threshold,
    LOOPS: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of row r of z, whose candidates are rows z_c.

    Keys are the queries, so that each row has both roles:

        ∂L/∂z_r = Σ_c (g_r·(h_c − o_r) / d_r + g_c·(h_r − o_c) / d_c) z_c        ∂L/∂h_r  = Σ_c z_r·z_c g_c / d_c
    """
    r = tl.program_id(0).to(tl.int64)
    least = tl.load(threshold)
    k, f = tl.arange(0, Q), tl.arange(0, P)
    z_r = tl.load(z + r * q + k, mask=k < q, other=0.0)
    z_sum = tl.zeros([BLOCK, Q], tl.float32)
    g_r = tl.load(grad + r * p + f, mask=f < p, other=0.0)
    o_r = tl.load(out + r * p + f, mask=f < p, other=0.0)
    d_r = tl.load(degree + r)
    g_r = g_r / tl.where(d_r > 0, d_r, 1.0)
    h_r = tl.load(h + r * p + f, mask=f < p, other=0.0)
    h_sum = tl.zeros([BLOCK, P], tl.float32)
    first, end = tl.load(start + r), tl.load(start + r + 1)
    for e_first in range(first, end, BLOCK):
        e = e_first + tl.arange(0, BLOCK)
        valid = e < end
        c = tl.load(columns + e, mask=valid, other=0).to(tl.int64)
        z_c = tl.load(z + c[:, None] * q + k[None, :], mask=valid[:, None] & (k[None, :] < q), other=0.0)
        s = tl.sum(z_c * z_r[None, :], axis=1)
        kept = _is_kept(s, c == r, least, LOOPS)
        entries = c[:, None] * p + f[None, :]
        in_row = kept[:, None] & (f[None, :] < p)
        delta = tl.zeros([BLOCK], tl.float32)
        h_c = tl.load(h + entries, mask=in_row, other=0.0)
        delta += tl.sum((h_c - o_r[None, :]) * g_r[None, :], axis=1)
        d_c = tl.load(degree + c, mask=kept, other=1.0)
        g_c = tl.load(grad + entries, mask=in_row, other=0.0) * (1.0 / d_c)[:, None]
        o_c = tl.load(out + entries, mask=in_row, other=0.0)
        delta += tl.sum((h_r[None, :] - o_c) * g_c, axis=1)
        h_sum += s[:, None] * g_c
        z_sum += tl.where(kept, delta, 0.0)[:, None] * z_c
    tl.store(grad_z + r * q + k, tl.sum(z_sum, axis=0), mask=k < q)
    tl.store(grad_h + r * p + f, tl.sum(h_sum, axis=0), mask=f < p)
