"""A small graph, and what it takes to write a model's equations out with dense matrices."""

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


def drawn(model):
    """The model in evaluation, every parameter at random, also those that start at 0."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model.eval()


def directed_graph():
    """The small graph, in which two of three edges have one direction only."""
    data = small_graph()
    source, target = data.edge_index
    data.arc_index = data.edge_index[:, (source <= target) | ((source + target) % 3 == 0)]
    return data


def dense_adjacency(data, direction: str = "undirected", *, loops: bool = False) -> torch.Tensor:
    """A in double precision: row i has a 1 for each node that node i sees."""
    source, target = data.edge_index if direction == "undirected" else data.arc_index
    A = torch.zeros(N, N, dtype=torch.double)
    A[source, target] = 1.0
    A = A.T if direction == "in" else A
    return A.fill_diagonal_(float(loops))


def both_sides(A: torch.Tensor) -> torch.Tensor:
    """D_r^-1/2 A D_c^-1/2, with the sums of rows and of columns; zero where a sum is zero."""
    rows, columns = (torch.where(d > 0, d.rsqrt(), 0.0) for d in (A.sum(1), A.sum(0)))
    return rows[:, None] * A * columns


def row_means(A: torch.Tensor) -> torch.Tensor:
    """D^-1 A, with zero rows for nodes without neighbours."""
    return A / A.sum(1, keepdim=True).clamp(min=1)


def batch_normalised(H: torch.Tensor, norm: torch.nn.BatchNorm1d) -> torch.Tensor:
    """Batch normalisation in evaluation, by its formula."""
    scaled = (H - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    return scaled * norm.weight + norm.bias


def with_statistics(model):
    """The model with means and variances that batch normalisation might have seen."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.uniform_(-1, 1, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return model


def assert_same(model, logits: torch.Tensor, expected: torch.Tensor) -> None:
    """Both have the same values and the same gradient in every parameter of the model."""
    torch.testing.assert_close(logits, expected)
    direction = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
    found, wanted = (
        torch.autograd.grad((output * direction).sum(), list(model.parameters()), retain_graph=True)
        for output in (logits, expected)
    )
    for (name, _), ours, theirs in zip(model.named_parameters(), found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, msg=lambda text, name=name: f"{name}: {text}")
