import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.sparse import (
    SparseMatrix,
    adjacency_matrix,
    fastest_form,
    from_scipy,
    take_rows,
    to_scipy,
    weighted_edges_sorted,
)

SIZES = st.integers(1, 8)


def draw(n: int, m: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, m, dtype=torch.double, generator=generator)
    return dense * (torch.rand(n, m, generator=generator) < 0.3)


@st.composite
def matrices(draw_from):
    return draw(draw_from(SIZES), draw_from(SIZES), draw_from(st.integers(0, 99)))


@st.composite
def edge_lists(draw_from):
    n = draw_from(SIZES)
    pairs = draw_from(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T, n


@given(matrices())
def test_scipy_and_back(dense) -> None:
    for layout in (dense, dense.to_sparse_csr(), dense.to_sparse(), dense.to_sparse_csc()):
        matrix = to_scipy(layout)
        assert isinstance(matrix, sp.csr_array)
        np.testing.assert_array_equal(matrix.toarray(), dense.numpy())
        again = from_scipy(matrix)
        assert again.layout == torch.sparse_csr
        assert again.crow_indices().dtype == again.col_indices().dtype == torch.long
        assert again.to_dense().equal(dense)


@given(matrices(), st.data())
def test_some_rows(dense, data) -> None:
    n = len(dense)
    begin = data.draw(st.integers(0, n))
    end = data.draw(st.integers(begin, n))
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=9)), dtype=np.int64)
    for x in (dense, dense.to_sparse_csr()):
        for some in (slice(begin, end), rows):
            assert take_rows(x, some).layout == x.layout
            assert take_rows(x, some).to_dense().equal(dense[some])


@pytest.mark.parametrize("self_loops", [True, False])
@given(edge_lists())
def test_edges_and_adjacency_matrix(self_loops, graph) -> None:
    edges, n = graph
    expected = np.zeros((n, n), dtype=np.float32)
    expected[tuple(edges.numpy())] = 1
    np.fill_diagonal(expected, 1 if self_loops else 0)
    matrix = adjacency_matrix(edges, n, self_loops=self_loops)
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert matrix.has_canonical_format


@pytest.mark.parametrize("self_loops", [True, False])
@given(edge_lists())
def test_edges_with_weights(self_loops, graph) -> None:
    edges, n = graph
    weight = (1 + edges[0] * n + edges[1]).float()  # the same for duplicates
    expected = np.zeros((n, n), dtype=np.float32)
    expected[tuple(edges.numpy())] = weight
    diagonal = expected.diagonal()
    np.fill_diagonal(expected, np.where(diagonal > 0, diagonal, 1) if self_loops else 0)
    index, values = weighted_edges_sorted(edges, weight, n, self_loops=self_loops)
    np.testing.assert_array_equal(index.T, np.argwhere(expected))
    np.testing.assert_array_equal(values, expected[tuple(index.numpy())])


@given(matrices(), st.integers(1, 4))
def test_product_and_gradient_are_those_of_the_dense_matrix(dense, k) -> None:
    n, m = dense.shape
    right = torch.randn(m, k, dtype=torch.double, requires_grad=True)
    matrix = SparseMatrix(dense.to_sparse_csr())
    product = matrix @ right
    assert torch.allclose(product, dense @ right)
    weight = torch.randn(n, k, dtype=torch.double)
    (gradient,) = torch.autograd.grad((product * weight).sum(), right)
    assert torch.allclose(gradient, dense.T @ weight)
    assert matrix.to_dense().equal(dense)
    assert (len(matrix), matrix.shape, matrix.device.type) == (n, (n, m), "cpu")


def test_places_are_shared_only_where_they_are_the_same() -> None:
    dense = torch.tensor([[0.0, 2, 0], [3, 0, 4], [0, 0, 0]])
    ones, other = (SparseMatrix(values.to_sparse_csr()) for values in ((dense > 0).float(), dense.T))
    matrix = SparseMatrix(dense.to_sparse_csr())
    shared = matrix.sharing_places(ones)
    assert shared._places[1].data_ptr() == ones._places[1].data_ptr()
    right = torch.randn(3, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (shared @ right).sum().backward()
    assert torch.equal(shared @ right, dense @ right)
    assert torch.equal(right.grad, dense.T @ torch.ones(3, 2))
    assert torch.equal(ones.to_dense(), (dense > 0).float()), "the other is as before"
    for different in (other, dense, SparseMatrix(dense[:, :2].to_sparse_csr())):
        assert matrix.sharing_places(different) is matrix


@pytest.mark.parametrize(("share", "kind"), [(0.02, SparseMatrix), (0.5, torch.Tensor)])
def test_the_fastest_form_is_sparse_where_few_entries_are_not_zero(share, kind) -> None:
    generator = torch.Generator().manual_seed(0)
    x = (torch.rand(50, 40, generator=generator) < share).float()
    b = torch.randn(40, 3, generator=generator)
    for given_as in (x, SparseMatrix(x.to_sparse_csr())):
        matrix = fastest_form(given_as)
        assert isinstance(matrix, kind)
        torch.testing.assert_close(matrix @ b, x @ b)
    assert isinstance(fastest_form(x.to_sparse_csr()), SparseMatrix), "it may not fit into memory otherwise"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu() -> None:
    dense = draw(6, 5, 0).float()
    matrix = SparseMatrix(dense.to_sparse_csr()).to("cuda")
    assert torch.allclose((matrix @ torch.eye(5, device="cuda")).cpu(), dense)
