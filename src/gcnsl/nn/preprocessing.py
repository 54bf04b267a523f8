"""What is done to a graph once, before the model sees it: features normalised and shifted, Â made."""

from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops, coalesce, degree, remove_self_loops

from gcnsl.errors import InputError
from gcnsl.nn.sparse import SparseMatrix

FeatureNorm = Literal["none", "row", "l2"]
AdjacencyNorm = Literal["symmetric", "row"]


def normalize_features(x: Tensor, norm: FeatureNorm = "none") -> Tensor:
    """Divide each row of X (n × d, dense) by its sum of magnitudes (``row``) or its length (``l2``); zero rows stay."""
    if norm not in get_args(FeatureNorm):
        raise InputError(f"norm({norm!r}) must be one of {', '.join(get_args(FeatureNorm))}")
    if norm == "none":
        return x
    return torch.nn.functional.normalize(x, p=1.0 if norm == "row" else 2.0, dim=1)


def shift_features(x: Tensor, amount: float = 0.5, *, seed: int = 0) -> Tensor:
    """Add a constant to one feature of all nodes, drawn from the seed: the paper's "special data preprocessing".

    X[:, j] += amount. With it no row of X is zero, so that every x_i Q has a direction.
    """
    if not amount >= 0:
        raise InputError(f"amount({amount}) must be >= 0")
    shifted = x.clone()
    shifted[:, int(np.random.default_rng(seed).integers(x.shape[1]))] += amount
    return shifted


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
