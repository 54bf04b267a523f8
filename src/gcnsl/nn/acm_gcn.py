"""ACM-GCN (Luan et al., 2022): each node mixes its own features, what its neighbours share and what differs."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import ArgumentError
from gcnsl.nn.config import ACMGCNConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, drop_entries, dropout
from gcnsl.nn.preprocessing import graph_adjacency, links_to_known
from gcnsl.sparse import Matrix, SparseMatrix


class ChannelMixing(nn.Module):
    r"""One layer: a sum of channels with weights that each node has for itself.

    .. math::
        H_L &= \sigma(\hat A X W_L), \quad H_H = \sigma((I - \hat A) X W_H), \quad
            H_I = \sigma(X W_I), \quad H_S = \sigma(A W_S) \\
        \alpha &= \mathrm{softmax}\big(\mathrm{sigmoid}(\mathrm{LN}(H_L) u_L, \dots, \mathrm{LN}(H_S) u_S)\, M / T\big),
            \qquad H' = s \sum_c \mathrm{diag}(\alpha_c) H_c

    σ is ReLU, T the number of channels (4, or 3 without H_S), and M is T × T. As in the authors' code, s is 1 with H_S
    and 3 without it.

    Shapes:
        x (n × in_channels), dense or sparse; adjacency Â (n × n); links A (n × N), for H_S → n × out_channels.
    """

    def __init__(
        self, in_channels: int, out_channels: int, num_nodes: int | None, *, structure: bool, relu_first: bool
    ) -> None:
        super().__init__()
        self.relu_first, channels = relu_first, 4 if structure else 3
        self.lin = FeatureLinear(in_channels, 3 * out_channels, bias=False, maps=3)
        self.lin_links = FeatureLinear(num_nodes, out_channels, bias=False) if structure and num_nodes else None
        self.norms = nn.ModuleList(nn.LayerNorm(out_channels) for _ in range(channels))
        self.scores = nn.ModuleList(FeatureLinear(out_channels, 1, bias=False) for _ in range(channels))
        self.mix = FeatureLinear(channels, channels, bias=False)

    def forward(self, x: Matrix, adjacency: SparseMatrix, links: SparseMatrix | None = None) -> Tensor:
        """H'."""
        mapped = self.lin(x).relu() if self.relu_first else self.lin(x)
        low, high, own = mapped.chunk(3, dim=1)
        near_low, near_high = (adjacency @ torch.cat([low, high], dim=1)).chunk(2, dim=1)
        channels = [near_low, high - near_high, own]
        if not self.relu_first:
            channels = [channel.relu() for channel in channels]
        if self.lin_links is not None:
            channels.append(self.lin_links(links).relu())
        parts = zip(self.scores, self.norms, channels, strict=True)
        scores = torch.cat([score(norm(channel)) for score, norm, channel in parts], dim=1).sigmoid()
        shares = (self.mix(scores) / len(channels)).softmax(dim=1)  # n × T
        mixed = torch.einsum("nt,tnp->np", shares, torch.stack(channels))
        return mixed if self.lin_links is not None else 3 * mixed


@declared_by(ACMGCNConfig)
class ACMGCN(GraphModel):
    r"""Two layers f₁ and f₂ of :class:`ChannelMixing`.

    .. math::
        Z = \mathrm{softmax}\,f_2\big(\mathrm{ReLU}\,f_1(X) + \mathrm{ReLU}(X W + b)\big)

    Only ACM-GCN++ has the second term. Without ``num_nodes``, there is no channel of ``structure``.

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n); links A (n × N), with ``structure`` → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_nodes: int | None = None, **options: Any
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **{"structure": num_nodes is not None} | options)
        config = self.config
        if config.structure and num_nodes is None:
            raise ArgumentError("num_nodes", num_nodes, "is needed for the channel of A·W: give it, or structure=False")
        switches = {"structure": config.structure, "relu_first": config.relu_first}
        self.first = ChannelMixing(in_channels, hidden_channels, num_nodes, **switches)
        self.second = ChannelMixing(hidden_channels, out_channels, num_nodes, **switches)
        self.skip = FeatureLinear(in_channels, hidden_channels) if config.residual else None

    @classmethod
    def matrices(cls, config: ACMGCNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â, and A if there is a channel for it."""
        adjacency = graph_adjacency(graph, self_loops=True, norm="row", direction=config.direction)
        links = [links_to_known(graph, config.direction)] if config.structure else []
        return adjacency, *links

    def logits(self, x: Matrix, adjacency: SparseMatrix, links: SparseMatrix | None = None) -> Tensor:
        """Logits of every node (n × C)."""
        x = drop_entries(x, self.config.dropout, training=self.training)
        h: Tensor = self.first(x, adjacency, links).relu()
        if self.skip is not None:
            h = h + self.skip(x).relu()
        logits: Tensor = self.second(dropout(h, self.config.dropout, training=self.training), adjacency, links)
        return logits
