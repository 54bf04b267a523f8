"""H2GCN (Zhu et al., 2020), which keeps a node, its neighbours, its second neighbours and all rounds separate."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.nn.config import H2GCNConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, dropout
from gcnsl.nn.preprocessing import normalized_adjacency
from gcnsl.sparse import (
    SPARSE_SHARE,
    Matrix,
    SparseMatrix,
    adjacency_matrix,
    csr_tensor,
    fastest_form,
    pairs_in_two_steps,
)

MOST_BYTES = 2 << 30
"""The largest Â₂, in memory."""
BYTES_PER_PAIR = 20
"""Of a sparse Â₂: place and value of an entry, also in the transpose, and where it is there."""
BLOCK_ENTRIES = 1 << 22
"""About so many entries of A² are computed at a time."""


def two_hop_adjacency(edge_index: Tensor, num_nodes: int) -> Matrix:
    """Â₂ = D^-1/2 A₂ D^-1/2 (n × n), where A₂ joins the nodes at distance exactly 2; dense if it has many entries.

    The rows of A² are computed a few at a time, once to count what remains of them and once to store it, so that memory
    is that of the result.

    Raises:
        InputError: If the result might take more than :data:`MOST_BYTES`, which is known beforehand.
    """
    n, pairs = num_nodes, pairs_in_two_steps(edge_index, num_nodes)
    needed = min(BYTES_PER_PAIR * pairs, 4 * n * n)
    if needed > MOST_BYTES:
        raise InputError(
            f"H2GCN joins every node to all nodes two steps away: in this graph up to {pairs:,} pairs, which take "
            f"{needed / 2**30:,.0f} GiB, and at most {MOST_BYTES / 2**30:.0f} are allowed; use another method, or "
            "leave out the nodes with the most neighbours"
        )
    near = adjacency_matrix(edge_index, n, self_loops=False).astype(bool)
    degree = np.concatenate([np.diff(rows.indptr) for _, rows in _two_hop_rows(near)])
    root = (torch.from_numpy(degree).clamp(min=1).to(torch.get_default_dtype()) ** -0.5).numpy()
    start = np.concatenate([[0], np.cumsum(degree)])
    if start[-1] > SPARSE_SHARE * n * n:
        dense = np.empty((n, n), root.dtype)
        for own, rows in _two_hop_rows(near):
            np.multiply(rows.toarray(), root[own, None], out=dense[own])
        return torch.from_numpy(np.multiply(dense, root, out=dense))
    column, values = np.empty(start[-1], np.int32), np.empty(start[-1], root.dtype)
    for own, rows in _two_hop_rows(near):
        entries = slice(start[own.start], start[own.stop])
        column[entries] = rows.indices
        values[entries] = np.repeat(root[own], degree[own]) * root[rows.indices]
    pattern = torch.from_numpy(start.astype(np.int32)), torch.from_numpy(column)
    return SparseMatrix(csr_tensor(*pattern, torch.from_numpy(values), (n, n)))


def _two_hop_rows(near: sp.csr_array) -> Iterator[tuple[slice, sp.csr_array]]:
    """The rows of A₂ with sorted columns and entries 1, a few at a time, from A without loops."""
    n = near.shape[0]
    nearer = (near + sp.eye_array(n, dtype=bool, format="csr")).astype(np.int8)
    most = np.minimum(near @ np.diff(near.indptr).astype(np.float64), n)  # entries of the rows of A²
    block = np.cumsum(most) // BLOCK_ENTRIES
    bounds = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), n]
    for first, last in itertools.pairwise(bounds):
        walks = (near[first:last] @ near).astype(np.int8)
        rows = (walks - nearer[first:last]).tocsr()  # 1 at distance 2, 0 or -1 nearer
        rows.data[rows.data < 0] = 0
        rows.eliminate_zeros()
        rows.sort_indices()
        yield slice(first, last), rows


@declared_by(H2GCNConfig)
class H2GCN(GraphModel):
    r"""Rounds of aggregation over one and two hops, without weights. The classifier sees all rounds.

    .. math::
        R^{(0)} &= \sigma(X W_e) \\
        R^{(k)} &= \hat A_1 R^{(k-1)} \,\|\, \hat A_2 R^{(k-1)} \\
        Z &= \mathrm{softmax}\big((R^{(0)} \| R^{(1)} \| \dots \| R^{(K)})\, W_c\big)

    Â₁ joins neighbours, Â₂ nodes at distance exactly 2, both without loops and symmetrically normalised; σ is ReLU or
    nothing.

    Shapes:
        x (n × d), one_hop Â₁ (n × n) and two_hop Â₂ (n × n), each dense or sparse → n × C.
        R^(k) has 2^k p columns, the concatenation (2^(K+1) - 1) p.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        self.lin_embed = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.lin_out = FeatureLinear((2 ** (self.config.rounds + 1) - 1) * hidden_channels, out_channels, bias=False)

    @classmethod
    def matrices(cls, config: H2GCNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â₁ and Â₂."""
        n = graph.num_nodes
        two_hop = two_hop_adjacency(graph.edge_index, n)
        one_hop = normalized_adjacency(graph.edge_index, n, self_loops=False)
        return fastest_form(one_hop), two_hop

    def logits(self, x: Matrix, one_hop: Matrix, two_hop: Matrix) -> Tensor:
        """Logits of every node (n × C)."""
        r = self.lin_embed(x)
        rounds = [r.relu() if self.config.relu else r]
        for _ in range(self.config.rounds):
            rounds.append(torch.cat([one_hop @ rounds[-1], two_hop @ rounds[-1]], dim=1))
        return self.lin_out(dropout(torch.cat(rounds, dim=1), self.config.dropout, training=self.training))
