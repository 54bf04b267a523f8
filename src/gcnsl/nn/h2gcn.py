"""H2GCN (Zhu et al., 2020), which keeps a node, its neighbours, its second neighbours and all rounds separate."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import ModelConfig, Precomputed, check_channels
from gcnsl.nn.dropout import dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import normalized_adjacency
from gcnsl.options import option
from gcnsl.sparse import Matrix, adjacency_matrix, fastest_form


@dataclass(frozen=True)
class H2GCNConfig(ModelConfig):
    """Hyper-parameters of :class:`H2GCN`: one round is H2GCN-1, two are H2GCN-2."""

    hidden_channels: int = option(64, "Width of the embedding.", least=1)
    rounds: int = option(2, "Rounds of aggregation; each doubles the width.", least=1, most=8)
    dropout: float = option(0.5, "Dropout before the last linear map.", least=0, below=1)
    relu: bool = option(True, "Whether the embedding ends in a ReLU.")

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X, Â₁ and Â₂."""
        n = graph.num_nodes
        hops = (graph.edge_index, two_hop_edges(graph.edge_index, n))
        adjacencies = (normalized_adjacency(edges, n, self_loops=False) for edges in hops)
        return fastest_form(graph.x), *map(fastest_form, adjacencies)

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "H2GCN":
        """The model for this number of features and classes."""
        return self.make(H2GCN, in_channels=in_channels, out_channels=out_channels)


def two_hop_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The pairs of nodes at distance exactly 2 (2 × E₂, sorted)."""
    near = adjacency_matrix(edge_index, num_nodes, self_loops=False)
    closer = (near + sp.eye_array(num_nodes, dtype=np.float32, format="csr")).sign()
    walks = (near @ near).sign()
    strict = (walks - walks.multiply(closer)).tocsr()
    strict.eliminate_zeros()
    strict.sort_indices()
    return torch.from_numpy(np.stack(strict.nonzero()).astype(np.int64))


class H2GCN(nn.Module):
    r"""Rounds of aggregation over one and two hops, without weights. The classifier sees all rounds.

    .. math::
        R^{(0)} &= \sigma(X W_e) \\
        R^{(k)} &= \hat A_1 R^{(k-1)} \,\|\, \hat A_2 R^{(k-1)} \\
        Z &= \mathrm{softmax}\big((R^{(0)} \| R^{(1)} \| \dots \| R^{(K)})\, W_c\big)

    Â₁ joins neighbours, Â₂ nodes at distance exactly 2, both without loops and symmetrically normalised; σ is ReLU or
    nothing. The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Columns of W_e (p).
        out_channels: Number of classes (C).
        rounds: Number of rounds of aggregation (K).
        dropout: Dropout before W_c.
        relu: Whether σ is ReLU.

    Shapes:
        x (n × d), one_hop Â₁ (n × n) and two_hop Â₂ (n × n), each dense or sparse → n × C.
        R^(k) has 2^k p columns, the concatenation (2^(K+1) - 1) p.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        rounds: int = 2,
        dropout: float = 0.5,
        relu: bool = True,
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        H2GCNConfig.check(hidden_channels=hidden_channels, rounds=rounds, dropout=dropout, relu=relu)
        self.rounds, self.dropout, self.relu = rounds, dropout, relu
        self.lin_embed = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.lin_out = FeatureLinear((2 ** (rounds + 1) - 1) * hidden_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.lin_embed.reset_parameters()
        self.lin_out.reset_parameters()

    def forward(self, x: Matrix, one_hop: Matrix, two_hop: Matrix) -> Tensor:
        """Logits of every node (n × C)."""
        r: Tensor = self.lin_embed(x)
        rounds = [r.relu() if self.relu else r]
        for _ in range(self.rounds):
            rounds.append(torch.cat([one_hop @ rounds[-1], two_hop @ rounds[-1]], dim=1))
        final = dropout(torch.cat(rounds, dim=1), self.dropout, training=self.training)
        logits: Tensor = self.lin_out(final)
        return logits
