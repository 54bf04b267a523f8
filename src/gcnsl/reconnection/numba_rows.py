# ruff: noqa: PLR0917 - compiled kernels take their arguments by position
"""Compiled CPU kernels that apply the operator, and its derivative, to a range of rows whose kept columns are known.

Row i of the range begin..end has the kept columns ``columns[start[i - begin] : start[i - begin + 1]]``. Each kernel
writes its own rows only and sums in column order, so the result does not depend on how rows are shared among threads.

Two habits make the kernels fast. Sums are accumulated in local arrays by explicit loops: the compiler then knows that
they do not overlap the inputs, and keeps them in registers. Entries are read as ``z[i, k]`` and never through a view
``z[i]``: numba counts the references to each view, and all threads would compete for that counter.
"""

from typing import Any

import numpy as np

from gcnsl.compiled import compiled
from gcnsl.reconnection.numba_search import Floats, Ints

ANY_ORDER = {"contract", "reassoc", "nsz"}
"""Floating-point liberties of the compiler: it may fuse a multiplication and an addition, and reorder sums."""


@compiled(fastmath=ANY_ORDER)
def forward_rows(
    begin: int, end: int, start: Ints, columns: Ints, z: Floats, keys: Floats, h: Floats, out: Floats, degree: Floats
) -> None:
    """Write d_i = Σ_j s_ij and o_i = Σ_j s_ij h_j / d_i; rows without kept columns get 0."""
    sums = np.empty(h.shape[1], h.dtype)
    for i in range(begin, end):
        total = 0.0
        sums[:] = 0
        for e in range(start[i - begin], start[i - begin + 1]):
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
def scale_gradient_rows(
    begin: int, end: int, grad: Floats, out: Floats, degree: Floats, scaled: Floats, offset: Floats
) -> None:
    """Write g_i / d_i and c_i = g_i·o_i / d_i, from which all gradients are made; 0 for rows that keep nothing."""
    for i in range(begin, end):
        inverse = 1 / degree[i] if degree[i] > 0 else degree[i]
        for c in range(grad.shape[1]):
            scaled[i, c] = grad[i, c] * inverse
        offset[i] = _dot(scaled, i, out, i)


@compiled(fastmath=ANY_ORDER)
def gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, h: Floats, grad: Floats, offset: Floats, grad_z: Floats, grad_h: Floats,
) -> None:  # fmt: skip
    """Write ∂L/∂z_i = Σ_j (δ_ij + δ_ji) z_j and ∂L/∂h_i = Σ_j s_ij g_j if keys are z, so that pairs are symmetric.

    δ_ij = g_i·h_j − c_i, where g and c are already divided by d.
    """
    of_z, of_h = np.empty(z.shape[1], z.dtype), np.empty(h.shape[1], h.dtype)
    for i in range(begin, end):
        of_z[:] = 0
        of_h[:] = 0
        for e in range(start[i - begin], start[i - begin + 1]):
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
def query_gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, keys: Floats, h: Floats, grad: Floats, offset: Floats, grad_z: Floats,
) -> None:  # fmt: skip
    """Write ∂L/∂z_i = Σ_j δ_ij k_j with δ_ij = g_i·h_j − c_i, where g and c are already divided by d."""
    of_z = np.empty(z.shape[1], z.dtype)
    for i in range(begin, end):
        of_z[:] = 0
        for e in range(start[i - begin], start[i - begin + 1]):
            j = columns[e]
            delta = _dot(grad, i, h, j) - offset[i]
            for k in range(of_z.size):
                of_z[k] += delta * keys[j, k]
        grad_z[i] = of_z


@compiled(fastmath=ANY_ORDER)
def key_gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, keys: Floats, h: Floats, grad: Floats, offset: Floats, grad_keys: Floats, grad_h: Floats,
) -> None:  # fmt: skip
    """Write ∂L/∂h_j = Σ_i s_ij g_i and ∂L/∂k_j = Σ_i δ_ij z_i. Rows are keys j; columns are the queries that keep j."""
    of_key, of_h = np.empty(keys.shape[1], keys.dtype), np.empty(h.shape[1], h.dtype)
    for j in range(begin, end):
        of_key[:] = 0
        of_h[:] = 0
        for e in range(start[j - begin], start[j - begin + 1]):
            i = columns[e]
            s = _dot(z, i, keys, j)
            delta = -offset[i]
            for c in range(of_h.size):
                delta += grad[i, c] * h[j, c]
                of_h[c] += s * grad[i, c]
            for k in range(of_key.size):
                of_key[k] += delta * z[i, k]
        grad_keys[j] = of_key
        grad_h[j] = of_h


@compiled(fastmath=ANY_ORDER)
def _dot(a: Floats, i: int, b: Floats, j: int) -> Any:
    """Return a_i·b_j."""
    total = a.dtype.type(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[j, k]
    return total
