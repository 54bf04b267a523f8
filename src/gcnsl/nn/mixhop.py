"""MixHop (Abu-El-Haija et al., 2019): powers of Â side by side."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import MixHopConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, drop_entries, dropout
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.sparse import Matrix, SparseMatrix


class MixHopConvolution(nn.Module):
    r"""One layer, :math:`\big\Vert_{j \in P} \hat A^j X W_j + b`.

    It computes the same as torch_geometric's ``MixHopConv``, but applies the linear map before the powers, so that Â is
    multiplied by fewer columns, and X may be sparse.

    Shapes:
        x (n × in_channels), dense or sparse; adjacency Â (n × n) → n × (powers · out_channels).
    """

    def __init__(self, in_channels: int, out_channels: int, powers: tuple[int, ...]) -> None:
        super().__init__()
        self.out_channels, self.powers = out_channels, tuple(sorted(powers))
        self.lin = FeatureLinear(in_channels, len(powers) * out_channels, bias=False, maps=len(powers))
        self.bias = nn.Parameter(torch.zeros(len(powers) * out_channels))

    def reset_parameters(self) -> None:
        """Draw new weights; the bias starts at 0."""
        self.lin.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """The powers side by side, in increasing order."""
        rest, done, reached = self.lin(x), [], 0
        for power in self.powers:
            for _ in range(power - reached):
                rest = adjacency @ rest
            done.append(rest[:, : self.out_channels])
            rest, reached = rest[:, self.out_channels :], power
        return torch.cat(done, dim=1) + self.bias


@declared_by(MixHopConfig)
class MixHop(GraphModel):
    r"""MixHop layers with batch normalisation and ReLU between them; the last one's powers are averaged with weights.

    .. math::
        H^{(l)} &= \mathrm{ReLU}\,\mathrm{BN}\Big(\big\Vert_{j \in P} \hat A^j H^{(l-1)} W^{(l)}_j + b^{(l)}\Big),
            \quad H^{(0)} = X \\
        Z &= \mathrm{softmax}\Big(\sum_{j \in P} \mathrm{softmax}(q)_j
            \big(\hat A^j H^{(L-1)} W^{(L)}_j + b^{(L)}_j\big)\Big)

    A hidden layer has ``|P|`` times ``hidden_channels`` columns: what H2GCN's experiments give is this total over three
    powers, 64 (here 21) or 192 (here 64).

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n) → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config = self.config
        self.out_channels, powers, num_layers = out_channels, config.powers, config.num_layers
        hidden = len(powers) * hidden_channels
        inputs = [in_channels, *[hidden] * (num_layers - 1)]
        outputs = [*[hidden_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(MixHopConvolution(*pair, powers) for pair in zip(inputs, outputs, strict=True))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(num_layers - 1))
        self.power_scores = nn.Parameter(torch.zeros(len(powers)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; all powers start with the same weight."""
        super().reset_parameters()
        nn.init.zeros_(self.power_scores)

    @classmethod
    def matrices(cls, config: MixHopConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â."""
        return (graph_adjacency(graph, self_loops=config.self_loops, norm="symmetric"),)

    def logits(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.convs[0](drop_entries(x, self.config.input_dropout, training=self.training), adjacency)
        for norm, conv in zip(self.norms, self.convs[1:], strict=True):
            h = dropout(norm(h).relu(), self.config.dropout, training=self.training)
            h = conv(h, adjacency)
        by_power = h.view(len(h), -1, self.out_channels)
        return torch.einsum("npc,p->nc", by_power, self.power_scores.softmax(dim=0))
