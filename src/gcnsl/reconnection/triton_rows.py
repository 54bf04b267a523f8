# ruff: noqa: PLR0917 - kernels take their arguments by position
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""CUDA kernels that apply the operator, and its derivative, to rows whose candidates are listed.

One program works on one row, BLOCK of its columns at a time, and writes that row only. There are no floating-point
atomics, so the same list gives the same bits. Row i has the candidates ``columns[start[i] : start[i + 1]]``, and those
whose similarity, summed in float32, is below the threshold are left out. The threshold is read from memory, so that it
can be one that the device has computed. Row i is itself key ``first_key`` + i, which is beyond all keys if rows are not
keys; with LOOPS it is kept unless it is zero, without it is left out.
"""

import triton
import triton.language as tl


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
    start, columns, x, y, h, grad, out, degree, grad_x, grad_h, q, p, threshold, first_key,
    LOOPS: tl.constexpr, QUERY: tl.constexpr, KEY: tl.constexpr, Q: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of row r of x, whose candidates are rows y_c.

    With QUERY, x are queries and y keys:     ∂L/∂x_r += Σ_c (g_r·(h_c − o_r) / d_r) y_c
    With KEY, x are keys and y queries:       ∂L/∂x_r += Σ_c (g_c·(h_r − o_c) / d_c) y_c
                                              ∂L/∂h_r  = Σ_c x_r·y_c g_c / d_c
    With both, keys are the queries and each row has both roles. Row r of x is itself row ``first_key`` + r of y.
    """
    r = tl.program_id(0).to(tl.int64)
    least = tl.load(threshold)
    k, f = tl.arange(0, Q), tl.arange(0, P)
    x_r = tl.load(x + r * q + k, mask=k < q, other=0.0)
    x_sum = tl.zeros([BLOCK, Q], tl.float32)
    if QUERY:
        g_r = tl.load(grad + r * p + f, mask=f < p, other=0.0)
        o_r = tl.load(out + r * p + f, mask=f < p, other=0.0)
        d_r = tl.load(degree + r)
        g_r = g_r / tl.where(d_r > 0, d_r, 1.0)
    if KEY:
        h_r = tl.load(h + r * p + f, mask=f < p, other=0.0)
        h_sum = tl.zeros([BLOCK, P], tl.float32)
    first, end = tl.load(start + r), tl.load(start + r + 1)
    for e_first in range(first, end, BLOCK):
        e = e_first + tl.arange(0, BLOCK)
        valid = e < end
        c = tl.load(columns + e, mask=valid, other=0).to(tl.int64)
        y_c = tl.load(y + c[:, None] * q + k[None, :], mask=valid[:, None] & (k[None, :] < q), other=0.0)
        s = tl.sum(y_c * x_r[None, :], axis=1)
        kept = _is_kept(s, c == r + first_key, least, LOOPS)
        entries = c[:, None] * p + f[None, :]
        in_row = kept[:, None] & (f[None, :] < p)
        delta = tl.zeros([BLOCK], tl.float32)
        if QUERY:
            h_c = tl.load(h + entries, mask=in_row, other=0.0)
            delta += tl.sum((h_c - o_r[None, :]) * g_r[None, :], axis=1)
        if KEY:
            d_c = tl.load(degree + c, mask=kept, other=1.0)
            g_c = tl.load(grad + entries, mask=in_row, other=0.0) * (1.0 / d_c)[:, None]
            o_c = tl.load(out + entries, mask=in_row, other=0.0)
            delta += tl.sum((h_r[None, :] - o_c) * g_c, axis=1)
            h_sum += s[:, None] * g_c
        x_sum += tl.where(kept, delta, 0.0)[:, None] * y_c
    tl.store(grad_x + r * q + k, tl.sum(x_sum, axis=0), mask=k < q)
    if KEY:
        tl.store(grad_h + r * p + f, tl.sum(h_sum, axis=0), mask=f < p)
