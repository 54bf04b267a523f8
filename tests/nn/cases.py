"""What holds for every model, and a small graph to write its equations out on."""

import copy

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from gcnsl import synthetic
from gcnsl.datasets import with_random_split
from gcnsl.nn import ModelConfig, SparseMatrix

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


def check_every_model_law(config: ModelConfig) -> None:
    """Gradients reach every parameter; nodes may be renumbered; sparse features count like dense ones; seeds decide."""
    data = small_graph()
    torch.manual_seed(0)
    model = drawn(config.build(data))
    before = copy.deepcopy(model.state_dict())
    logits = model(*config.prepare(data, seed=0))
    assert logits.shape == (N, CLASSES)

    cross_entropy(logits, data.y).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name

    sparse = copy.copy(data)
    sparse.x = data.x.to_sparse_csr()
    torch.testing.assert_close(model(*config.prepare(sparse, seed=0)), logits, rtol=1e-4, atol=1e-4)

    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    other = copy.copy(data)
    other.x, other.y, other.edge_index = data.x[order], data.y[order], torch.argsort(order)[data.edge_index]
    torch.testing.assert_close(model(*config.prepare(other, seed=0)), logits[order], rtol=1e-4, atol=1e-4)

    for draw in (lambda: config.build(data), lambda: _reset(model)):
        torch.manual_seed(7)
        first = copy.deepcopy(draw().state_dict())
        torch.manual_seed(7)
        again = draw().state_dict()
        assert all(value.equal(again[name]) for name, value in first.items())
        assert any(not value.equal(before[name]) for name, value in first.items())


def _reset(model):
    model.reset_parameters()
    return model


def accuracy_after_training(config: ModelConfig, *, steps: int = 60, lr: float = 0.01) -> float:
    """Accuracy on test nodes of a graph with 5 classes and homophily .9, after a few steps of Adam."""
    data = with_random_split(synthetic(n=400, h=0.9, classes=5, degree=8, features=60, seed=0), runs=1)
    train, test = data.train_mask[:, 0], data.test_mask[:, 0]
    torch.manual_seed(0)
    model, inputs = config.build(data), config.prepare(data, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(*inputs)[train], data.y[train]).backward()
        optimizer.step()
    with torch.no_grad():
        found = model.eval()(*inputs).argmax(dim=1)
    return float((found == data.y)[test].float().mean())


def check_dropout_is_for_training_only(config: ModelConfig) -> None:
    data = small_graph()
    model, inputs = config.build(data), config.prepare(data, seed=0)
    assert not model(*inputs).equal(model(*inputs))
    model.eval()
    assert model(*inputs).equal(model(*inputs))
