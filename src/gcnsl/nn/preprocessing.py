"""Preprocessing of a graph: normalised and shifted features, and the normalised adjacency matrix Â."""

from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.utils import degree

from gcnsl.checks import check_choice, check_number
from gcnsl.sparse import SparseMatrix, csr_tensor, edges_sorted, from_scipy, to_scipy

FeatureNorm = Literal["none", "row", "l2"]
AdjacencyNorm = Literal["symmetric", "row"]


def normalize_features(x: Tensor, norm: FeatureNorm = "none") -> Tensor:
    """Divide each row of X (n × d, dense or CSR) by its sum of magnitudes (``row``) or its length (``l2``).

    Zero rows stay zero.
    """
    if check_choice("norm", norm, get_args(FeatureNorm)) == "none":
        return x
    order = 1 if norm == "row" else 2
    if x.layout != torch.sparse_csr:
        return torch.nn.functional.normalize(x, p=order, dim=1)
    start, values = x.crow_indices(), x.values()
    row = torch.repeat_interleave(torch.arange(len(start) - 1, device=x.device), start.diff())
    size = values.new_zeros(len(start) - 1).index_add_(0, row, values.abs() ** order) ** (1 / order)
    return csr_tensor(start, x.col_indices(), values / size.clamp(min=1e-12)[row], x.shape)


def shift_features(x: Tensor, amount: float = 0.5, *, seed: int = 0) -> Tensor:
    """X[:, j] += amount, for one random feature j (X dense or CSR): the paper's "special data preprocessing".

    Afterwards no row of nonnegative features is zero, so that every x_i Q has a direction.
    """
    check_number("amount", amount, least=0)
    column = int(np.random.default_rng(seed).integers(x.shape[1]))
    if x.layout != torch.sparse_csr:
        shifted = x.clone()
        shifted[:, column] += amount
        return shifted
    n, before = x.shape[0], to_scipy(x)
    shift = sp.csr_array((np.full(n, amount), np.full(n, column), np.arange(n + 1)), shape=x.shape)
    return from_scipy(before + shift.astype(before.dtype))


def normalized_adjacency(
    edge_index: Tensor, num_nodes: int, *, self_loops: bool = True, norm: AdjacencyNorm = "symmetric"
) -> SparseMatrix:
    """Â = D^-1/2 A D^-1/2 (``symmetric``) or D^-1 A (``row``), where A has loops at all nodes or at none.

    ``edge_index`` (2 × E) holds each undirected edge in both directions. Without loops, the row of a node that has no
    neighbours is zero.
    """
    check_choice("norm", norm, get_args(AdjacencyNorm))
    source, target = edges = edges_sorted(edge_index, num_nodes, self_loops=self_loops)
    size = degree(source, num_nodes, dtype=torch.get_default_dtype())
    inverse = torch.where(size > 0, size.clamp(min=1) ** (-0.5 if norm == "symmetric" else -1.0), 0.0)
    weight = inverse[source] * inverse[target] if norm == "symmetric" else inverse[source]
    return SparseMatrix.from_edges(edges, weight, num_nodes)
