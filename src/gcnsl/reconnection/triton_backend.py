# ruff: noqa: PLR0917 - kernels take their arguments by position
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""The operator on a GPU: if candidate pairs are few, they are listed and visited one by one, else tiles are fused.

The host waits for the device once in a forward pass, for the report on the input and the number of candidates, and
never in a backward pass. Recorded work is done in tiles, without waiting. In small graphs launching a kernel takes
longer than running it, so there are few kernels.

**The search** finds the pairs that may be kept on the tensor cores. Unit rows are rounded to float16 and multiplied in
tiles, with float32 accumulation. Rounding changes the product of two entries by at most 2⁻¹⁰ + 2⁻²² of its size. For
unit rows these sizes sum to at most 1, so no similarity changes by more than `MARGIN`, which also covers the
accumulation and entries too small for float16. All pairs with a similarity of at least ε − MARGIN are candidates. The
pair of row i and key j, out of m keys, is stored as the integer i·m + j. Integer atomics give each pair its place, so
the order of candidates differs from run to run. Sorting them makes the result reproducible.

**Listed rows.** One program works on one row, BLOCK of its candidates at a time, and writes that row only. There are no
floating-point atomics, so the same list gives the same bits. Candidates whose similarity, summed in float32, is below
the threshold are left out.

**Tiles** of similarities never leave the chip. This is flash attention with the softmax replaced by division by the
sum: one program holds BLOCK_N rows and visits all others, BLOCK_M at a time. Products run on the tensor cores with
every float32 split into TF32 parts (`tf32x3`), which leaves an error close to that of float32. Tiles in which no pair
is kept need no further product.

The threshold is read from memory, so that it can be one that the device has computed. Row i is itself key ``first_key``
+ i, which is beyond all keys if rows are not keys; with LOOPS it is kept unless it is zero, without it is left out.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import cdiv, next_power_of_2

from gcnsl.execution import is_recorded
from gcnsl.reconnection import problem as arguments
from gcnsl.reconnection import tiled
from gcnsl.reconnection.problem import Averages, Gradients, Pairs, Problem

find = tiled.find
SEARCH_ROWS = 64
SEARCH_PROGRAMS = 8192
"""The number of programs of a large search: many per processor, so that none idles."""
FUSED_PAIRS = 4096**2
"""Up to this many pairs, computing all similarities takes less time than launching the kernels of a search."""
SMALL_GRAPH = 1 << 16
EXPECTED_PER_ROW = 16
"""Candidates per row to prepare for in graphs of at most SMALL_GRAPH rows, before their number is known."""
MOST_CANDIDATES = 2**31 - 2**24
"""The largest list. Programs of the search may count some candidates beyond it, in an integer of 32 bits."""
FORWARD_TILE = {"BLOCK_N": 32, "BLOCK_M": 128, "num_warps": 4}
"""Here and in the next two, the fastest tile of those tried on an H200."""
SMALL_FORWARD_TILE = {"BLOCK_N": 16, "BLOCK_M": 128, "num_warps": 4}
GRADIENT_TILE = {"BLOCK_N": 128, "BLOCK_M": 32, "num_warps": 8}
GRADIENT_PROGRAMS = 128
"""If there are fewer programs, each with BLOCK_N rows, keys are divided among more, so that fewer processors idle."""
FUSED_WIDTH = 64
"""The widest rows for which a fused tile fits the registers. For wider rows, the products of `tiled` are as fast."""
ROW_ENTRIES = 256
"""Entries of h that one program loads at a time."""
BLOCK_ENTRIES = 4096
"""The same for kernels that read a matrix once."""
BEYOND_ALL_KEYS = 1 << 30
"""Where the key that is row 0 is, if rows are not keys."""
MARGIN = 1.1e-3
TILE_KEYS = 64
"""The number of keys in a tile of the search: one per bit of an integer."""


def forward(problem: Problem) -> Averages:
    """Return o, d and the candidate pairs, listed if they are few."""
    z, keys, h, _, tolerance = problem[:5]
    (n, q), (m, p) = z.shape, h.shape
    if is_recorded():  # the host can't learn how many candidates there are, nor whether the input is valid
        with _device_of(z):
            return _average_over_tiles(problem, SMALL_FORWARD_TILE if n * m <= FUSED_PAIRS else FORWARD_TILE)
    threshold = _in_memory(problem)
    problem = problem._replace(threshold=threshold)
    room = min(problem.room, MOST_CANDIDATES)
    expected = min(EXPECTED_PER_ROW * n, room) if n <= SMALL_GRAPH else 0
    early = None
    with _device_of(z):
        report = torch.zeros(4, dtype=torch.int32, device=z.device)
        rounded_keys = _prepare_rows(keys, h, report, tolerance, are_keys=not problem.square)
        rounded = rounded_keys if problem.square else _prepare_rows(z, None, report, tolerance, are_keys=False)
        if n * m <= FUSED_PAIRS and max(q, p) <= FUSED_WIDTH:
            averages = _average_over_tiles(problem, SMALL_FORWARD_TILE)
            _read(report, problem)
            return averages
        found = _start_search(problem, rounded, rounded_keys, report, room=room, expected=expected)
        if expected:  # assume that these are all, and queue the next kernels while the device still searches
            early = _average_over_list(torch.sort(found[:expected]).values, problem)
        count = _read(report, problem)
        if count > room:
            return _average_over_tiles(problem, FORWARD_TILE)
        if early is not None and count <= expected:
            return early
        listed = torch.sort(found[:count]).values
        del found  # frees memory for the list
        return _average_over_list(listed, problem)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given ∂L/∂o."""
    z, _, h, threshold = *problem[:3], _in_memory(problem)
    (n, q), p, (out, degree, pairs) = z.shape, h.shape[1], averages
    if not problem.square or (pairs is None and max(q, p) > FUSED_WIDTH):
        return tiled.backward(problem, averages, grad)
    with _device_of(z):
        if pairs is not None:
            grad_z, grad_h = torch.empty_like(z), torch.empty_like(h)
            gradient_rows[(n,)](
                pairs.start, pairs.columns, z, h, grad, out, degree, grad_z, grad_h, q, p, threshold,
                LOOPS=problem.loops, **_row_shape(q, p),
            )  # fmt: skip
            return Gradients(grad_z, grad_z, grad_h)
        blocks, tiles = cdiv(n, GRADIENT_TILE["BLOCK_N"]), cdiv(n, GRADIENT_TILE["BLOCK_M"])
        parts = max(1, min(GRADIENT_PROGRAMS // blocks, tiles))
        part_z, part_h = z.new_empty(parts, n, q), h.new_empty(parts, n, p)
        gradient_tiles[(blocks, parts)](
            z, h, *_scale_gradient(averages, grad), part_z, part_h, n, q, p, threshold,
            cdiv(tiles, parts) * GRADIENT_TILE["BLOCK_M"],
            LOOPS=problem.loops, Q=_padded(q), P=_padded(p), **GRADIENT_TILE,
        )  # fmt: skip
        grad_z = part_z.sum(dim=0)
        return Gradients(grad_z, grad_z, part_h.sum(dim=0))


def _scale_gradient(averages: Averages, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return g / d (n × p) and g·o / d (n)."""
    (n, p), rows = grad.shape, BLOCK_ENTRIES // _padded(grad.shape[1])
    scaled, offset = torch.empty_like(grad), torch.empty_like(averages.degree)
    scale_gradient[(cdiv(n, rows),)](
        grad, averages.out, averages.degree, scaled, offset, n, p, P=_padded(p), BLOCK=rows
    )
    return scaled, offset


def _prepare_rows(rows: Tensor, h: Tensor | None, report: Tensor, tolerance: float, *, are_keys: bool) -> Tensor:
    """Return rows rounded for the search; the same kernel checks them, and h if given."""
    (n, q), p = rows.shape, 1 if h is None else h.shape[1]
    Q, P = _padded(q), _padded(p)
    rounded = rows.new_empty(n, Q, dtype=torch.float16)
    block = BLOCK_ENTRIES // max(Q, P)
    prepare_rows[(cdiv(n, block),)](
        rows, rounded, h, report, n, q, p, tolerance, ARE_KEYS=are_keys, HAS_H=h is not None, Q=Q, P=P, BLOCK=block
    )
    return rounded


def _start_search(problem: Problem, rows: Tensor, keys: Tensor, report: Tensor, *, room: int, expected: int) -> Tensor:
    """Start the search for candidates among rounded rows and keys; return the tensor that the device will fill.

    Candidates are not sorted. If keys are the rows themselves, a pair comes in both orders. The first ``expected``
    places are initialised with a number that is no pair and sorts behind all pairs.
    """
    n, m, square = rows.shape[0], keys.shape[0], keys is rows
    dtype = torch.int32 if n * m < 2**31 - 1 else torch.int64  # sorting int32 takes half the time
    no_pair = torch.iinfo(dtype).max
    found = torch.empty(room, dtype=dtype, device=rows.device)
    if expected:
        found[:expected].fill_(no_pair)
    row_blocks, tiles = cdiv(n, SEARCH_ROWS), cdiv(m, TILE_KEYS)
    each = cdiv(row_blocks * tiles, SEARCH_PROGRAMS)
    search[(row_blocks, cdiv(tiles, each))](
        rows, keys, n, m, _in_memory(problem), _first_key(problem), report, found, room, each,
        SQUARE=square, NO_PAIR=no_pair,
        Q=rows.shape[1], BLOCK=SEARCH_ROWS, TILE=TILE_KEYS, LEEWAY=MARGIN, num_warps=4,
    )  # fmt: skip
    return found


def _read(report: Tensor, problem: Problem) -> int:
    """Wait for the report; raise an error if the input is invalid, else return the number of candidates."""
    bad_z, bad_key, bad_h, count = report.tolist()
    if bad_z:
        raise arguments.unit_error("z", problem.z, len(problem.z) - bad_z)
    if bad_key:
        raise arguments.unit_error("keys", problem.keys, len(problem.keys) - bad_key)
    if bad_h:
        raise arguments.finite_error("h", problem.h)
    return int(count)


def _average_over_list(listed: Tensor, problem: Problem) -> Averages:
    """Return the averages over sorted candidates, which are listed for the backward pass."""
    z, keys, h, threshold = *problem[:3], _in_memory(problem)
    (n, q), (m, p), count = z.shape, h.shape, listed.shape[0]
    out, degree = h.new_empty(n, p), z.new_empty(n)
    pairs = Pairs(z.new_empty(n + 1, dtype=torch.int64), z.new_empty(count, dtype=torch.int32))
    forward_rows[(n,)](
        listed, count, count.bit_length() + 1, n, m, threshold, _first_key(problem), pairs.start, pairs.columns,
        z, keys, h, out, degree, q, p, LOOPS=problem.loops, **_row_shape(q, p),
    )  # fmt: skip
    return Averages(out, degree, pairs)


def _average_over_tiles(problem: Problem, tile: dict[str, int]) -> Averages:
    """Return the averages from fused tiles, or from matrix products if rows are wide."""
    z, keys, h, threshold = *problem[:3], _in_memory(problem)
    (n, q), (m, p) = z.shape, h.shape
    if max(q, p) > FUSED_WIDTH:
        return tiled.forward(problem)
    out, degree = h.new_empty(n, p), z.new_empty(n)
    forward_tiles[(cdiv(n, tile["BLOCK_N"]),)](
        z, keys, h, out, degree, n, m, q, p, threshold, _first_key(problem),
        LOOPS=problem.loops, Q=_padded(q), P=_padded(p), **tile,
    )  # fmt: skip
    return Averages(out, degree)


def _in_memory(problem: Problem) -> Tensor:
    """Return the threshold in the device's memory (1), where kernels read it."""
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


@triton.jit
def forward_rows(
    pairs, n_pairs, steps, n, m, threshold, first_key, start, columns, z, keys, h, out, degree, q, p,
    LOOPS: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write d_i = Σ_j s_ij and o_i = Σ_j s_ij h_j / d_i; rows without kept columns get 0.

    The pairs i·m + j are sorted. A program finds those of its row by bisection, in ``steps`` halvings, and writes their
    columns and where they start, for the backward pass.
    """
    i = tl.program_id(0).to(tl.int64)
    least = tl.load(threshold)
    k, c = tl.arange(0, Q), tl.arange(0, P)
    row = tl.load(z + i * q + k, mask=k < q, other=0.0)
    total = tl.zeros([BLOCK], tl.float32)
    average = tl.zeros([BLOCK, P], tl.float32)
    first = _first_from(pairs, n_pairs, steps, i * m)
    end = _first_from(pairs, n_pairs, steps, i * m + m)
    tl.store(start + i, first)
    if i == n - 1:
        tl.store(start + n, end)
    for e_first in range(first, end, BLOCK):
        e = e_first + tl.arange(0, BLOCK)
        valid = (e < end)[:, None]
        j = tl.load(pairs + e, mask=e < end, other=0).to(tl.int64) - tl.where(e < end, i * m, 0)
        tl.store(columns + e, j.to(tl.int32), mask=e < end)
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
def _first_from(pairs, n_pairs, steps, wanted):
    """Return the position of the first pair ≥ ``wanted``."""
    low = wanted * 0
    high = low + n_pairs
    for _ in range(steps):
        middle = (low + high) // 2
        before = tl.load(pairs + middle, mask=low < high, other=0).to(tl.int64) < wanted
        high = tl.where((low < high) & ~before, middle, high)
        low = tl.where((low < high) & before, middle + 1, low)
    return low


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


@triton.jit
def _rows(pointer, i, n, width, PADDED: tl.constexpr):
    """Load the rows i < n of a matrix with ``width`` columns, padded with zeros."""
    c = tl.arange(0, PADDED)
    return tl.load(
        pointer + i.to(tl.int64)[:, None] * width + c[None, :], mask=(i[:, None] < n) & (c[None, :] < width), other=0.0
    )


@triton.jit
def _store_rows(pointer, values, i, n, width, PADDED: tl.constexpr):
    c = tl.arange(0, PADDED)
    tl.store(
        pointer + i.to(tl.int64)[:, None] * width + c[None, :], values, mask=(i[:, None] < n) & (c[None, :] < width)
    )


@triton.jit
def _kept(s, top, left, least, first_key, LOOPS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    """Set the similarities that are not kept to 0, in a tile whose first row and key are ``top`` and ``left``."""
    kept = tl.where(s >= least, s, 0.0)
    shift = top + first_key - left
    if (shift > -BLOCK_N) & (shift < BLOCK_M):  # the tile has loops
        is_loop = (tl.arange(0, BLOCK_N) + shift)[:, None] == tl.arange(0, BLOCK_M)[None, :]
        kept = tl.where(is_loop, s if LOOPS else 0.0, kept)
    return kept


@triton.jit
def forward_tiles(
    z, keys, h, out, degree, n, m, q, p, threshold, first_key,
    LOOPS: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Write d_i = Σ_j s_ij and o_i = Σ_j s_ij h_j / d_i over kept pairs; rows that keep nothing get 0."""
    top = tl.program_id(0) * BLOCK_N
    i = top + tl.arange(0, BLOCK_N)
    least = tl.load(threshold)
    row = _rows(z, i, n, q, Q)
    total = tl.zeros([BLOCK_N], tl.float32)
    average = tl.zeros([BLOCK_N, P], tl.float32)
    for left in range(0, m, BLOCK_M):
        j = left + tl.arange(0, BLOCK_M)
        s = tl.dot(row, tl.trans(_rows(keys, j, m, q, Q)), input_precision="tf32x3")
        s = _kept(s, top, left, least, first_key, LOOPS, BLOCK_N, BLOCK_M)
        if tl.max(s) > 0:
            total += tl.sum(s, axis=1)
            average += tl.dot(s, _rows(h, j, m, p, P), input_precision="tf32x3")
    tl.store(degree + i, total, mask=i < n)
    _store_rows(out, average / tl.where(total > 0, total, 1.0)[:, None], i, n, p, P)


@triton.jit
def scale_gradient(grad, out, degree, scaled, offset, n, p, P: tl.constexpr, BLOCK: tl.constexpr):
    """Write g_i / d_i and g_i·o_i / d_i, from which all gradients are made; 0 for rows that keep nothing."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, P)
    entries = i[:, None] * p + c[None, :]
    mask = (i[:, None] < n) & (c[None, :] < p)
    d = tl.load(degree + i, mask=i < n, other=0.0)
    inverse = tl.where(d > 0, 1.0 / tl.where(d > 0, d, 1.0), 0.0)
    row = tl.load(grad + entries, mask=mask, other=0.0) * inverse[:, None]
    tl.store(scaled + entries, row, mask=mask)
    tl.store(offset + i, tl.sum(row * tl.load(out + entries, mask=mask, other=0.0), axis=1), mask=i < n)


@triton.jit
def gradient_tiles(
    z, h, grad, offset, grad_z, grad_h, n, q, p, threshold, keys_each,
    LOOPS: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Write the gradients of the rows r of z (n × q) from all rows c of z; see `gradient_rows`.

    Here ``grad`` and ``offset`` are the results of `scale_gradient`, so that they are not computed for every tile. A
    second dimension of programs divides the rows c, ``keys_each`` for each; each part has gradients of its own.
    """
    first = tl.program_id(1) * keys_each
    grad_z += tl.program_id(1).to(tl.int64) * n * q
    grad_h += tl.program_id(1).to(tl.int64) * n * p
    top = tl.program_id(0) * BLOCK_N
    r = top + tl.arange(0, BLOCK_N)
    least = tl.load(threshold)
    z_r = _rows(z, r, n, q, Q)
    z_sum = tl.zeros([BLOCK_N, Q], tl.float32)
    g_r = _rows(grad, r, n, p, P)
    offset_r = tl.load(offset + r, mask=r < n, other=0.0)
    h_r = _rows(h, r, n, p, P)
    h_sum = tl.zeros([BLOCK_N, P], tl.float32)
    for left in range(first, tl.minimum(first + keys_each, n), BLOCK_M):
        c = left + tl.arange(0, BLOCK_M)
        z_c = _rows(z, c, n, q, Q)
        s = tl.dot(z_r, tl.trans(z_c), input_precision="tf32x3")
        s = _kept(s, top, left, least, 0, LOOPS, BLOCK_N, BLOCK_M)
        if tl.max(s) > 0:
            delta = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
            h_c = _rows(h, c, n, p, P)
            delta += tl.dot(g_r, tl.trans(h_c), input_precision="tf32x3") - offset_r[:, None]
            g_c = _rows(grad, c, n, p, P)
            offset_c = tl.load(offset + c, mask=c < n, other=0.0)
            delta += tl.dot(h_r, tl.trans(g_c), input_precision="tf32x3") - offset_c[None, :]
            h_sum += tl.dot(s, g_c, input_precision="tf32x3")
            z_sum += tl.dot(tl.where(s > 0, delta, 0.0), z_c, input_precision="tf32x3")
    _store_rows(grad_z, z_sum, r, n, q, Q)
    _store_rows(grad_h, h_sum, r, n, p, P)
