"""Small graphs as adjacency matrices."""

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch

from gcnsl import synthetic
from gcnsl.datasets.neighbourhoods import StructuralNeighbourhood


def edges(n: int = 50) -> torch.Tensor:
    """The edges of a small random graph (2 × E)."""
    return synthetic(n=n, h=0.5, classes=2, degree=3, features=8, seed=0).edge_index


def same(one: StructuralNeighbourhood, other: StructuralNeighbourhood) -> bool:
    return one.edge_index.equal(other.edge_index) and one.division.equal(other.division) and one.how == other.how


def csr(graph: nx.Graph) -> sp.csr_array:
    """A graph whose nodes are 0, 1, ... as a matrix."""
    matrix = sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), dtype=np.float32, weight=None))
    matrix.sort_indices()
    return matrix


def random_graph(n: int = 60, *, degree: float = 3, seed: int = 0) -> nx.Graph:
    """A graph with hubs, and usually with more than one component."""
    edges = synthetic(n=n, h=0.5, classes=2, degree=degree, features=8, seed=seed).edge_index
    graph = nx.Graph(edges.T.tolist())
    graph.add_nodes_from(range(n))
    return graph


def distances(positions: np.ndarray) -> np.ndarray:
    """Between all pairs."""
    return np.linalg.norm(positions[:, None] - positions[None], axis=2)
