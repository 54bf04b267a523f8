"""What is done to a graph once, before the model sees it: features normalised and shifted, Â made."""

from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops, coalesce, degree, remove_self_loops

from gcnsl.csr import csr_tensor
from gcnsl.errors import InputError
from gcnsl.nn.sparse import SparseMatrix

FeatureNorm = Literal["none", "row", "l2"]
AdjacencyNorm = Literal["symmetric", "row"]
SPARSE_SHARE = 0.15
"""Up to this share of entries that are not zero, a sparse product is faster than a dense one."""


def normalize_features(x: Tensor, norm: FeatureNorm = "none") -> Tensor:
    """Divide each row of X (n × d, dense or CSR) by its sum of magnitudes (``row``) or its length (``l2``).

    Zero rows stay.
    """
    if norm not in get_args(FeatureNorm):
        raise InputError(f"norm({norm!r}) must be one of {', '.join(get_args(FeatureNorm))}")
    if norm == "none":
        return x
    order = 1 if norm == "row" else 2
    if x.layout != torch.sparse_csr:
        return torch.nn.functional.normalize(x, p=order, dim=1)
    start, values = x.crow_indices(), x.values()
    row = torch.repeat_interleave(torch.arange(len(start) - 1, device=x.device), start.diff())
    size = values.new_zeros(len(start) - 1).index_add_(0, row, values.abs() ** order) ** (1 / order)
    return csr_tensor(start, x.col_indices(), values / size.clamp(min=1e-12)[row], x.shape)


def shift_features(x: Tensor, amount: float = 0.5, *, seed: int = 0) -> Tensor:
    """Add a constant to one feature of all nodes, drawn from the seed: the paper's "special data preprocessing".

    X[:, j] += amount (X dense or CSR). With it no row of X is zero, so that every x_i Q has a direction.
    """
    if not amount >= 0:
        raise InputError(f"amount({amount}) must be >= 0")
    column = int(np.random.default_rng(seed).integers(x.shape[1]))
    if x.layout != torch.sparse_csr:
        shifted = x.clone()
        shifted[:, column] += amount
        return shifted
    n = x.shape[0]
    shift = sp.csr_array((np.full(n, amount), np.full(n, column), np.arange(n + 1)), shape=x.shape)
    data, columns, start = (part.numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
    total = sp.csr_array((data, columns, start), shape=x.shape) + shift.astype(data.dtype)
    starts, places = (torch.from_numpy(part.astype(np.int64)) for part in (total.indptr, total.indices))
    return csr_tensor(starts, places, torch.from_numpy(total.data), x.shape)


def feature_matrix(x: Tensor) -> Tensor | SparseMatrix:
    """X in the form that products with it are fastest in: sparse where few entries are not zero, else dense."""
    if x.layout == torch.sparse_csr:
        return SparseMatrix(x)
    if int(x.count_nonzero()) > SPARSE_SHARE * x.numel():
        return x
    row, column = x.nonzero(as_tuple=True)
    start = torch.searchsorted(row, torch.arange(len(x) + 1, device=x.device))
    return SparseMatrix(csr_tensor(start, column, x[row, column], x.shape))


def fastest_form(matrix: SparseMatrix) -> Tensor | SparseMatrix:
    """The matrix in the form that products with it are fastest in: dense where many entries are not zero."""
    n, m = matrix.shape
    return matrix.to_dense() if len(matrix.values) > SPARSE_SHARE * n * m else matrix


def normalized_adjacency(
    edge_index: Tensor, num_nodes: int, *, self_loops: bool = True, norm: AdjacencyNorm = "symmetric"
) -> SparseMatrix:
    """Â = D^-1/2 A D^-1/2 (``symmetric``) or D^-1 A (``row``), A with a loop at every node, or with none.

    A node without neighbours has a zero row where there are no loops.
    """
    if norm not in get_args(AdjacencyNorm):
        raise InputError(f"norm({norm!r}) must be one of {', '.join(get_args(AdjacencyNorm))}")
    edges, _ = (
        add_remaining_self_loops(edge_index, num_nodes=num_nodes) if self_loops else remove_self_loops(edge_index)
    )
    source, target = edges = coalesce(edges, num_nodes=num_nodes)
    size = degree(source, num_nodes, dtype=torch.get_default_dtype())
    inverse = torch.where(size > 0, size.clamp(min=1) ** (-0.5 if norm == "symmetric" else -1.0), 0.0)
    weight = inverse[source] * inverse[target] if norm == "symmetric" else inverse[source]
    return SparseMatrix.from_edges(edges, weight, num_nodes)
