"""The graph convolutional network of Kipf and Welling (2017), of any depth."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.nn.checks import check_at_least, check_dropout
from gcnsl.nn.config import Input
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import (
    AdjacencyNorm,
    FeatureNorm,
    feature_matrix,
    normalize_features,
    normalized_adjacency,
)
from gcnsl.nn.sparse import SparseMatrix


@dataclass(frozen=True)
class GCNConfig:
    """Hyper-parameters of :class:`GCN`; ``self_loops`` and ``adjacency_norm`` say how Â is made."""

    hidden_channels: int = 64
    num_layers: int = 2
    dropout: float = 0.5
    feature_norm: FeatureNorm = "row"
    self_loops: bool = True
    adjacency_norm: AdjacencyNorm = "symmetric"

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """X and Â."""
        x = feature_matrix(normalize_features(data.x, self.feature_norm))
        return x, normalized_adjacency(
            data.edge_index, data.num_nodes, self_loops=self.self_loops, norm=self.adjacency_norm
        )

    def build(self, data: Data) -> "GCN":
        """The model, its weights drawn from torch's generator."""
        return GCN(
            data.num_features,
            self.hidden_channels,
            len(data.class_names),
            num_layers=self.num_layers,
            dropout=self.dropout,
        )


class GraphConvolution(nn.Module):
    r"""One layer, :math:`\hat A X W + b`.

    This is torch_geometric's ``GCNConv`` (the test compares the two) for an Â that is made once, with a backward pass
    that is a product with a kept transpose, and for an X that may be sparse.

    Shapes:
        x (n × in_channels), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; adjacency Â (n × n)
        → n × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = FeatureLinear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def reset_parameters(self) -> None:
        """Draw the weights anew; the bias starts at 0."""
        self.lin.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix) -> Tensor:
        """Â X W + b."""
        mapped: Tensor = self.lin(x)
        return adjacency @ mapped + self.bias


class GCN(nn.Module):
    r"""Graph convolutions with ReLU between them.

    .. math::
        H^{(l)} = \mathrm{ReLU}(\hat A H^{(l-1)} W^{(l)} + b^{(l)}), \quad H^{(0)} = X, \qquad
        Z = \mathrm{softmax}(\hat A H^{(L-1)} W^{(L)} + b^{(L)})

    The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Features of a node (d).
        hidden_channels: Width of every layer but the last.
        out_channels: Classes.
        num_layers: Convolutions (L), at least 1.
        dropout: Before every convolution.

    Shapes:
        x (n × d), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; adjacency Â (n × n) → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_at_least(1, num_layers=num_layers)
        check_dropout(dropout=dropout)
        self.dropout = dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(GraphConvolution(*pair) for pair in pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        reset(self.convs)

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.convs[0](drop_entries(x, self.dropout, training=self.training), adjacency)
        for conv in self.convs[1:]:
            h = conv(dropout(h.relu(), self.dropout, training=self.training), adjacency)
        return h
