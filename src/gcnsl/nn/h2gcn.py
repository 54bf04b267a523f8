"""H2GCN (Zhu et al., 2020), which keeps a node, its neighbours, its second neighbours and all rounds separate."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils import gen_even_slices
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.nn.config import H2GCNConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, dropout
from gcnsl.nn.preprocessing import normalized_adjacency
from gcnsl.sparse import SPARSE_SHARE, Matrix, adjacency_matrix, fastest_form, from_scipy, pairs_in_two_steps

MOST_BYTES = 2 << 30
"""The largest Â₂, in memory."""
BYTES_PER_PAIR = 20
"""Of a sparse Â₂: place and value of an entry, also in the transpose, and where it is there."""
BLOCK_ENTRIES = 1 << 22
"""About so many entries of A² are computed at a time, so that memory is that of the result."""


def two_hop_adjacency(edge_index: Tensor, num_nodes: int) -> Matrix:
    """Â₂ = D^-1/2 A₂ D^-1/2 (n × n), where A₂ joins the nodes at distance exactly 2; dense if it has many entries.

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
    nearer = (near + sp.eye_array(n, dtype=bool, format="csr")).astype(np.int8)
    kind = torch.empty(0).numpy().dtype
    dense = np.empty((n, n), kind) if pairs > SPARSE_SHARE * n * n else None
    parts = []
    for rows in gen_even_slices(n, min(n, 1 + pairs // BLOCK_ENTRIES)):
        part = (near[rows] @ near).astype(np.int8) - nearer[rows]  # 1 at distance 2, 0 or -1 nearer
        part.data = np.maximum(part.data, 0)
        part.eliminate_zeros()
        part.sort_indices()
        if dense is None:
            parts.append(part)
        else:
            part.astype(kind).toarray(out=dense[rows])
    far: Any = sp.vstack(parts, format="csr", dtype=kind) if dense is None else dense
    degree = torch.from_numpy(far.sum(axis=1))
    root = (degree.clamp(min=1) ** -0.5).numpy()
    if dense is not None:
        dense *= root[:, None]
        dense *= root
        return fastest_form(torch.from_numpy(dense))
    far.data = np.repeat(root, np.diff(far.indptr)) * root[far.indices]
    return fastest_form(from_scipy(far))


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
