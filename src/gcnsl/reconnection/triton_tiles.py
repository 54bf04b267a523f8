# ruff: noqa: PLR0917 - kernels take their arguments by position
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""CUDA kernels for graphs that keep a large share of all pairs: tiles of similarities that never leave the chip.

This is flash attention with the softmax replaced by division by the sum: one program holds BLOCK_N rows and visits all
others, BLOCK_M at a time. Products run on the tensor cores with every float32 split into TF32 parts (`tf32x3`), which
leaves an error close to that of float32. Tiles in which no pair is kept need no further product.

Row i is itself key ``first_key`` + i, which is beyond all keys if rows are not keys. With LOOPS, every row but a zero
row keeps this pair, without none does.
"""

import triton
import triton.language as tl


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
    x, y, h, grad, offset, grad_x, grad_h, n, m, q, p, threshold, first_key, keys_each,
    LOOPS: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr,
    Q: tl.constexpr, P: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Write the gradients of the rows r of x (n × q) from all rows c of y (m × q); see `triton_rows.gradient_rows`.

    Here ``grad`` and ``offset`` are the results of `scale_gradient`, so that they are not computed for every tile. A
    second dimension of programs divides the rows of y, ``keys_each`` for each; each part has gradients of its own. Row
    r of x is itself row ``first_key`` + r of y.
    """
    first = tl.program_id(1) * keys_each
    grad_x += tl.program_id(1).to(tl.int64) * n * q
    grad_h += tl.program_id(1).to(tl.int64) * n * p
    top = tl.program_id(0) * BLOCK_N
    r = top + tl.arange(0, BLOCK_N)
    least = tl.load(threshold)
    x_r = _rows(x, r, n, q, Q)
    x_sum = tl.zeros([BLOCK_N, Q], tl.float32)
    if QUERY:
        g_r = _rows(grad, r, n, p, P)
        offset_r = tl.load(offset + r, mask=r < n, other=0.0)
    if KEY:
        h_r = _rows(h, r, n, p, P)
        h_sum = tl.zeros([BLOCK_N, P], tl.float32)
    for left in range(first, tl.minimum(first + keys_each, m), BLOCK_M):
        c = left + tl.arange(0, BLOCK_M)
        y_c = _rows(y, c, m, q, Q)
        s = tl.dot(x_r, tl.trans(y_c), input_precision="tf32x3")
        s = _kept(s, top, left, least, first_key, LOOPS, BLOCK_N, BLOCK_M)
        if tl.max(s) > 0:
            delta = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
            if QUERY:
                h_c = _rows(h, c, m, p, P)
                delta += tl.dot(g_r, tl.trans(h_c), input_precision="tf32x3") - offset_r[:, None]
            if KEY:
                g_c = _rows(grad, c, m, p, P)
                offset_c = tl.load(offset + c, mask=c < m, other=0.0)
                delta += tl.dot(h_r, tl.trans(g_c), input_precision="tf32x3") - offset_c[None, :]
                h_sum += tl.dot(s, g_c, input_precision="tf32x3")
            x_sum += tl.dot(tl.where(s > 0, delta, 0.0), y_c, input_precision="tf32x3")
    _store_rows(grad_x, x_sum, r, n, q, Q)
    if KEY:
        _store_rows(grad_h, h_sum, r, n, p, P)
