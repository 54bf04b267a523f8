"""A small graph, and what it takes to write a model's equations out with dense matrices."""

import numpy as np
import torch

from gcnsl import synthetic
from gcnsl.sparse import SparseMatrix

N, D, P, CLASSES = 24, 9, 4, 3


def small_graph():
    """24 nodes, 9 features, 3 classes; one node has a loop and one no neighbour."""
    data = synthetic(n=N, h=0.4, classes=CLASSES, degree=3, features=D, seed=1)
    away = (data.edge_index == N - 1).any(dim=0)
    data.edge_index = torch.cat([data.edge_index[:, ~away], torch.tensor([[5], [5]])], dim=1)
    data.x[:, 0] += torch.linspace(0, 1, N)  # no two nodes alike
    return data


def both_forms(x: torch.Tensor) -> list:
    """Features as a model may get them."""
    return [x, SparseMatrix(x.to_sparse_csr())]


def adjacency_matrix(data) -> np.ndarray:
    """A without loops."""
    A = np.zeros((N, N))
    A[tuple(data.edge_index.numpy())] = 1
    np.fill_diagonal(A, 0)
    return A


def symmetric(A: np.ndarray) -> np.ndarray:
    """D^-1/2 A D^-1/2, with zero rows for nodes without neighbours."""
    degree = A.sum(1)
    root = np.array([1 / np.sqrt(d) if d > 0 else 0 for d in degree])
    return root[:, None] * A * root[None, :]


def weights(model) -> dict[str, np.ndarray]:
    """Parameters by name; matrices of linear maps as X·W takes them."""
    return {
        name: (value.T if name.endswith("weight") and value.ndim == 2 else value).detach().numpy()
        for name, value in model.named_parameters()
    }


def drawn(model):
    """The model in evaluation, every parameter at random, also those that start at 0."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model.eval()
