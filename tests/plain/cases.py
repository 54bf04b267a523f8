"""Small graphs, and what it takes to fit a model without the rest of the package."""

import numpy as np
import torch

from gcnsl import synthetic
from gcnsl.graph import from_arrays

N, CLASSES = 40, 3


def graph(*, directed: bool = False, weighted: bool = False, features: int = 7):
    """40 nodes of 3 classes; the last has no neighbours."""
    data = synthetic(n=N, h=0.5, classes=CLASSES, degree=4, features=features, seed=2, signal=0.6)
    ends = data.edge_index[:, (data.edge_index[0] < data.edge_index[1]) & (data.edge_index < N - 1).all(dim=0)]
    weight = torch.linspace(0.5, 3, ends.shape[1]) if weighted else None
    return from_arrays(data.x, ends, data.y, directed=directed, edge_weight=weight)


def dense(edges, n: int = N, weight=None) -> np.ndarray:
    """A (n × n), without loops."""
    A = np.zeros((n, n))
    for k, (i, j) in enumerate(edges.T.tolist()):
        A[i, j] = 1 if weight is None else float(weight[k])
    np.fill_diagonal(A, 0)
    return A


def means(A: np.ndarray) -> np.ndarray:
    """D^-1 A."""
    degree = A.sum(axis=1, keepdims=True)
    return np.divide(A, degree, out=np.zeros_like(A), where=degree > 0)


def trained_on(y: torch.Tensor, count: int = 24) -> torch.Tensor:
    """The labels of the first nodes alone."""
    return torch.where(torch.arange(len(y)) < count, y, -1)


def fit(model, inputs, y, *, stages: int = 1, weight=None):
    """The model after so many stages."""
    weight = torch.ones(len(y)) if weight is None else weight
    for number, _ in enumerate(model.stages(inputs, y, weight), start=1):
        if number == stages:
            return model
    raise AssertionError("there are fewer stages")


def setup(config, data):
    """A new model and its inputs."""
    inputs = config.inputs(data, config.precompute(data, seed=0), seed=0)
    return config.build(inputs[0].shape[1], CLASSES, data.num_nodes), inputs
