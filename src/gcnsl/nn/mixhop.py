"""MixHop (Abu-El-Haija et al., 2019): powers of Â side by side."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.errors import ArgumentError
from gcnsl.nn.config import ModelConfig, Precomputed, check_channels
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import FeatureNorm, graph_adjacency
from gcnsl.options import option
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form


@dataclass(frozen=True)
class MixHopConfig(ModelConfig):
    """Hyper-parameters of :class:`MixHop`."""

    uses: ClassVar[frozenset[str]] = frozenset({"weights"})

    feature_norm: FeatureNorm = option("l2", ModelConfig.described()[0].meaning)
    power_channels: int = option(64, "Width of the hidden layers for each power; their width is the sum.", least=1)
    powers: tuple[int, ...] = option((0, 1, 2), "The powers of Â; all different.", least=0, most=64)
    num_layers: int = option(2, "Number of layers.", least=1, most=64)
    input_dropout: float = option(0.7, "Dropout on X.", least=0, below=1)
    dropout: float = option(0.9, "Dropout before each layer but the first.", least=0, below=1)
    self_loops: bool = option(True, "Whether Â has a loop at every node.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.powers or len(set(self.powers)) < len(self.powers):
            raise ArgumentError("powers", self.powers, "must be one or more different whole numbers, such as [0, 1, 2]")

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X and Â, with the weights of the edges if they have some."""
        return fastest_form(graph.x), graph_adjacency(graph, self_loops=self.self_loops, norm="symmetric")

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "MixHop":
        """The model for this number of features and classes."""
        return self.make(MixHop, in_channels=in_channels, out_channels=out_channels)


class MixHopConvolution(nn.Module):
    r"""One layer, :math:`\big\Vert_{j \in P} \hat A^j X W_j + b`.

    It computes the same as torch_geometric's ``MixHopConv``, but applies the linear map before the powers, so that Â is
    multiplied by fewer columns, and X may be sparse.

    Shapes:
        x (n × in_channels), dense or sparse; adjacency Â (n × n)
        → n × (powers · out_channels).
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


class MixHop(nn.Module):
    r"""MixHop layers with batch normalisation and ReLU between them; the last one's powers are averaged with weights.

    .. math::
        H^{(l)} &= \mathrm{ReLU}\,\mathrm{BN}\Big(\big\Vert_{j \in P} \hat A^j H^{(l-1)} W^{(l)}_j + b^{(l)}\Big),
            \quad H^{(0)} = X \\
        Z &= \mathrm{softmax}\Big(\sum_{j \in P} \mathrm{softmax}(q)_j
            \big(\hat A^j H^{(L-1)} W^{(L)}_j + b^{(L)}_j\big)\Big)

    The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Number of features per node (d).
        power_channels: Columns of each W_j but the last layer's. A hidden layer has ``|P|`` times as many: what H2GCN's
            experiments give is this total over three powers, 64 (here 21) or 192 (here 64).
        out_channels: Number of classes (C).
        powers: The powers of Â (P), all different.
        num_layers: Number of layers (L).
        input_dropout: Dropout on X.
        dropout: Dropout before each layer but the first.

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n) → n × C.
    """

    def __init__(
        self,
        in_channels: int,
        power_channels: int,
        out_channels: int,
        *,
        powers: tuple[int, ...] = (0, 1, 2),
        num_layers: int = 2,
        input_dropout: float = 0.7,
        dropout: float = 0.9,
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        MixHopConfig.check(power_channels=power_channels, powers=powers, num_layers=num_layers)
        MixHopConfig.check(input_dropout=input_dropout, dropout=dropout)
        self.out_channels, self.input_dropout, self.dropout = out_channels, input_dropout, dropout
        hidden = len(powers) * power_channels
        inputs = [in_channels, *[hidden] * (num_layers - 1)]
        outputs = [*[power_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(MixHopConvolution(*pair, powers) for pair in zip(inputs, outputs, strict=True))
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(num_layers - 1))
        self.power_scores = nn.Parameter(torch.zeros(len(powers)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; all powers start with the same weight."""
        reset(self.convs)
        reset(self.norms)
        nn.init.zeros_(self.power_scores)

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.convs[0](drop_entries(x, self.input_dropout, training=self.training), adjacency)
        for norm, conv in zip(self.norms, self.convs[1:], strict=True):
            h = dropout(norm(h).relu(), self.dropout, training=self.training)
            h = conv(h, adjacency)
        by_power = h.view(len(h), -1, self.out_channels)
        return torch.einsum("npc,p->nc", by_power, self.power_scores.softmax(dim=0))
