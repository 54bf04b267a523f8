import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.reconnection import dense, numba_rows

from .cases import make_case

sizes = st.integers(1, 20)


@given(sizes, sizes, sizes, st.integers(0, 2**31))
def test_kernels_on_a_range_of_rows(n: int, q: int, p: int, seed: int) -> None:
    """Forward and gradients of some rows, with all columns kept, against the matrix in float64."""
    case = make_case(n, 7, q, p, "all", seed)
    z, h, keys = case.leaves(torch.float64)
    out = dense.reconnect(z, keys, h, 1e-3)
    grad = case.upstream().double()
    out.backward(grad)
    degree = (z @ keys.T).sum(dim=1)
    arrays = [tensor.detach().numpy() for tensor in (z, keys, h, grad, out, degree)]
    rows, key_rows, values, upstream, averages, degrees = arrays
    begin, end = n // 3, n
    some, start, columns = slice(begin, end), np.arange(n - begin + 1) * 7, np.tile(np.arange(7, dtype=np.int32), n)

    got, got_degree = np.zeros_like(averages), np.zeros_like(degrees)
    numba_rows.forward_rows(begin, end, start, columns, rows, key_rows, values, got, got_degree)
    assert np.allclose(got[some], averages[some])
    assert np.allclose(got_degree[some], degrees[some])
    assert not got[:begin].any()

    scaled, offset = np.empty_like(upstream), np.empty_like(degrees)
    numba_rows.scale_gradient_rows(0, n, upstream, averages, degrees, scaled, offset)
    assert np.allclose(scaled, upstream / degrees[:, None])
    assert np.allclose(offset, (upstream * averages).sum(axis=1) / degrees)

    inputs = rows, key_rows, values, scaled, offset
    got = np.zeros_like(rows)
    numba_rows.query_gradient_rows(begin, end, start, columns, *inputs, got)
    assert np.allclose(got[some], z.grad[some])
    got_keys, got_h = np.zeros_like(key_rows), np.zeros_like(values)
    everyone = np.tile(np.arange(n, dtype=np.int32), 7)
    numba_rows.key_gradient_rows(2, 7, np.arange(6) * n, everyone, *inputs, got_keys, got_h)
    assert np.allclose(got_keys[2:], keys.grad[2:])
    assert np.allclose(got_h[2:], h.grad[2:])


def test_symmetric_gradients_are_the_sum_of_both_roles() -> None:
    case = make_case(30, None, 5, 4, "all", seed=1)
    z, h = case.leaves(torch.float64)
    out = dense.reconnect(z, z, h, 1e-3)
    out.backward(case.upstream().double())
    degree = (z @ z.T).sum(dim=1, keepdim=True)
    scaled = case.upstream().double() / degree
    offset = (scaled * out).sum(dim=1)
    grad_z, grad_h = np.zeros((30, 5)), np.zeros((30, 4))
    columns = np.tile(np.arange(30, dtype=np.int32), 30)
    inputs = [tensor.detach().numpy() for tensor in (z, h, scaled, offset)]
    numba_rows.gradient_rows(0, 30, np.arange(31) * 30, columns, *inputs, grad_z, grad_h)
    assert np.allclose(grad_z, z.grad)
    assert np.allclose(grad_h, h.grad)
