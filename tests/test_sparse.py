import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.nn import SparseMatrix


def draw(n: int, m: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, m, dtype=torch.double, generator=generator)
    return dense * (torch.rand(n, m, generator=generator) < 0.3)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 4), st.integers(0, 99))
def test_product_and_gradient_are_those_of_the_dense_matrix(n, m, k, seed) -> None:
    dense = draw(n, m, seed)
    right = torch.randn(m, k, dtype=torch.double, requires_grad=True)
    product = SparseMatrix(dense.to_sparse_csr()) @ right
    assert torch.allclose(product, dense @ right)
    weight = torch.randn(n, k, dtype=torch.double)
    (gradient,) = torch.autograd.grad((product * weight).sum(), right)
    assert torch.allclose(gradient, dense.T @ weight)


def test_other_values_reach_the_backward_pass() -> None:
    dense = draw(6, 5, 0)
    matrix = SparseMatrix(dense.to_sparse_csr())
    right = torch.eye(5, dtype=torch.double, requires_grad=True)
    (matrix @ right).sum().backward()  # what the matrix keeps for its next product is not the other one's
    right.grad = None
    doubled = matrix.with_values(2 * matrix.values) @ right
    doubled.sum().backward()
    assert torch.allclose(doubled, 2 * dense)
    assert torch.allclose(right.grad, 2 * dense.T @ torch.ones(6, 5, dtype=torch.double))


def test_from_edges() -> None:
    edges, weight = torch.tensor([[0, 0, 2], [1, 2, 0]]), torch.tensor([1.0, 2.0, 3.0])
    matrix = SparseMatrix.from_edges(edges, weight, 4)
    expected = torch.zeros(4, 4)
    expected[edges[0], edges[1]] = weight
    assert (matrix @ torch.eye(4)).equal(expected)
    assert repr(matrix) == "SparseMatrix(4 × 4, 3 entries)"
    assert matrix.to("cpu") is matrix


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu() -> None:
    dense = draw(6, 5, 0).float()
    matrix = SparseMatrix(dense.to_sparse_csr()).to("cuda")
    assert torch.allclose((matrix @ torch.eye(5, device="cuda")).cpu(), dense)
