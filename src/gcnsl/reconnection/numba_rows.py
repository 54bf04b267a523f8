# ruff: noqa: PLR0917 - compiled kernels take their arguments by position
"""Compiled CPU kernels that apply the operator, and its derivative, to a range of rows whose kept columns are known.

Row i of the range begin..end has the kept columns ``columns[start[i - begin] : start[i - begin + 1]]``. Each kernel
writes its own rows only and sums in column order, so the result does not depend on how rows are shared among threads.
"""

from typing import Any

from gcnsl.reconnection.numba_search import Floats, Ints, compiled


@compiled(reassociate=True)
def forward_rows(
    begin: int, end: int, start: Ints, columns: Ints, z: Floats, keys: Floats, h: Floats, out: Floats, degree: Floats
) -> None:
    """d_i = Σ_j s_ij and o_i = Σ_j s_ij h_j / d_i; rows without kept columns get 0."""
    for i in range(begin, end):
        total = 0.0
        out_i = out[i]
        out_i[:] = 0
        for e in range(start[i - begin], start[i - begin + 1]):
            j = columns[e]
            s = _dot(z[i], keys[j])
            total += s
            _add_multiple(out_i, s, h[j])
        degree[i] = total
        if total > 0:
            for c in range(out_i.size):
                out_i[c] /= total


@compiled(reassociate=True)
def scale_gradient_rows(
    begin: int, end: int, grad: Floats, out: Floats, degree: Floats, scaled: Floats, offset: Floats
) -> None:
    """Write g_i / d_i and g_i·o_i / d_i, all the gradients want of g, o and d; 0 where a row keeps nothing."""
    for i in range(begin, end):
        inverse = 1 / degree[i] if degree[i] > 0 else degree[i]
        for c in range(grad.shape[1]):
            scaled[i, c] = grad[i, c] * inverse
        offset[i] = _dot(scaled[i], out[i])


@compiled(reassociate=True)
def gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, h: Floats, grad: Floats, offset: Floats, grad_z: Floats, grad_h: Floats,
) -> None:  # fmt: skip
    """∂L/∂z_i = Σ_j (δ_ij + δ_ji) z_j and ∂L/∂h_i = Σ_j s_ij g_j, where queries are keys and pairs therefore symmetric.

    δ_ij = g_i·h_j − c_i, where g and c are already divided by d.
    """
    for i in range(begin, end):
        for e in range(start[i - begin], start[i - begin + 1]):
            j = columns[e]
            delta = _dot(grad[i], h[j]) + _dot(h[i], grad[j]) - offset[i] - offset[j]
            _add_multiple(grad_z[i], delta, z[j])
            _add_multiple(grad_h[i], _dot(z[i], z[j]), grad[j])


@compiled(reassociate=True)
def query_gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, keys: Floats, h: Floats, grad: Floats, offset: Floats, grad_z: Floats,
) -> None:  # fmt: skip
    """∂L/∂z_i = Σ_j δ_ij k_j with δ_ij = g_i·h_j − c_i, where g and c are already divided by d."""
    for i in range(begin, end):
        for e in range(start[i - begin], start[i - begin + 1]):
            j = columns[e]
            _add_multiple(grad_z[i], _dot(grad[i], h[j]) - offset[i], keys[j])


@compiled(reassociate=True)
def key_gradient_rows(
    begin: int, end: int, start: Ints, columns: Ints,
    z: Floats, keys: Floats, h: Floats, grad: Floats, offset: Floats, grad_keys: Floats, grad_h: Floats,
) -> None:  # fmt: skip
    """∂L/∂h_j = Σ_i s_ij g_i and ∂L/∂k_j = Σ_i δ_ij z_i: here rows are keys j, columns the queries i that keep them."""
    for j in range(begin, end):
        for e in range(start[j - begin], start[j - begin + 1]):
            i = columns[e]
            _add_multiple(grad_h[j], _dot(z[i], keys[j]), grad[i])
            _add_multiple(grad_keys[j], _dot(grad[i], h[j]) - offset[i], z[i])


@compiled(reassociate=True)
def _dot(a: Floats, b: Floats) -> Any:
    total = a.dtype.type(0)
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled(reassociate=True)
def _add_multiple(total: Floats, factor: float, row: Floats) -> None:
    for c in range(total.size):
        total[c] += factor * row[c]
