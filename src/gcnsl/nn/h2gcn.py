"""H2GCN (Zhu et al., 2020): ego and neighbours apart, two hops apart, all rounds kept."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.checks import check_at_least, check_dropout
from gcnsl.nn.config import Input
from gcnsl.nn.dropout import dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import (
    FeatureNorm,
    fastest_form,
    feature_matrix,
    normalize_features,
    normalized_adjacency,
)
from gcnsl.nn.sparse import SparseMatrix


@dataclass(frozen=True)
class H2GCNConfig:
    """Hyper-parameters of :class:`H2GCN`: one round is H2GCN-1, two are H2GCN-2."""

    hidden_channels: int = 64
    rounds: int = 2
    dropout: float = 0.5
    relu: bool = True
    feature_norm: FeatureNorm = "row"

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """X, Â₁ and Â₂."""
        n, one_hop = data.num_nodes, data.edge_index
        return (
            feature_matrix(normalize_features(data.x, self.feature_norm)),
            *(
                fastest_form(normalized_adjacency(edges, n, self_loops=False))
                for edges in (one_hop, two_hop_edges(one_hop, n))
            ),
        )

    def build(self, data: Data) -> "H2GCN":
        """The model, its weights drawn from torch's generator."""
        return H2GCN(
            data.num_features,
            self.hidden_channels,
            len(data.class_names),
            rounds=self.rounds,
            dropout=self.dropout,
            relu=self.relu,
        )


def two_hop_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The pairs of nodes at distance exactly 2 (2 × E₂, sorted), found by a sparse product."""
    source, target = edge_index.cpu().numpy()
    other = source != target
    ones = np.ones(int(other.sum()), dtype=np.float32)
    near = sp.csr_array((ones, (source[other], target[other])), shape=(num_nodes, num_nodes))
    closer = (near + sp.eye_array(num_nodes, dtype=np.float32, format="csr")).sign()
    walks = (near @ near).sign()
    strict = (walks - walks.multiply(closer)).tocsr()
    strict.eliminate_zeros()
    strict.sort_indices()
    return torch.from_numpy(np.stack(strict.nonzero()).astype(np.int64))


class H2GCN(nn.Module):
    r"""Rounds of aggregation over one and over two hops, without weights, all of them classified together.

    .. math::
        R^{(0)} &= \sigma(X W_e) \\
        R^{(k)} &= \hat A_1 R^{(k-1)} \,\|\, \hat A_2 R^{(k-1)} \\
        Z &= \mathrm{softmax}\big((R^{(0)} \| R^{(1)} \| \dots \| R^{(K)})\, W_c\big)

    Â₁ joins neighbours, Â₂ nodes at distance exactly 2, both without loops and symmetrically normalised; σ is ReLU or
    nothing. The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Features of a node (d).
        hidden_channels: Columns of W_e (p).
        out_channels: Classes.
        rounds: Rounds of aggregation (K).
        dropout: On the concatenation before W_c.
        relu: Whether σ is ReLU.

    Shapes:
        x (n × d), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; one_hop Â₁ and two_hop Â₂ (n × n) likewise
        → n × C. R^(k) has 2^k p columns, the concatenation (2^(K+1) - 1) p.
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
        check_at_least(1, in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_at_least(1, rounds=rounds)
        check_dropout(dropout=dropout)
        self.rounds, self.dropout, self.relu = rounds, dropout, relu
        self.lin_embed = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.lin_out = FeatureLinear((2 ** (rounds + 1) - 1) * hidden_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.lin_embed.reset_parameters()
        self.lin_out.reset_parameters()

    def forward(
        self, x: Tensor | SparseMatrix, one_hop: Tensor | SparseMatrix, two_hop: Tensor | SparseMatrix
    ) -> Tensor:
        """Logits of every node (n × C)."""
        r: Tensor = self.lin_embed(x)
        rounds = [r.relu() if self.relu else r]
        for _ in range(self.rounds):
            rounds.append(torch.cat([one_hop @ rounds[-1], two_hop @ rounds[-1]], dim=1))
        final = dropout(torch.cat(rounds, dim=1), self.dropout, training=self.training)
        logits: Tensor = self.lin_out(final)
        return logits
