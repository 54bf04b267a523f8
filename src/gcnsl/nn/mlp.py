"""The multi-layer perceptron, which classifies by the features alone."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.nn.config import ModelConfig, Precomputed, check_channels
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.options import option
from gcnsl.sparse import Matrix, fastest_form


@dataclass(frozen=True)
class MLPConfig(ModelConfig):
    """Hyper-parameters of :class:`MLP`."""

    node_columns: ClassVar[frozenset[int] | None] = frozenset()

    hidden_channels: int = option(64, "Width of the hidden layers.", least=1)
    num_layers: int = option(2, "Number of linear maps.", least=1, most=64)
    dropout: float = option(0.5, "Dropout before each linear map.", least=0, below=1)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X; the edges are ignored."""
        return (fastest_form(graph.x),)

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "MLP":
        """The model for this number of features and classes."""
        return self.make(MLP, in_channels=in_channels, out_channels=out_channels)


class MLP(nn.Module):
    r"""Linear maps with ReLU between them.

    .. math::
        H^{(l)} = \mathrm{ReLU}(H^{(l-1)} W^{(l)} + b^{(l)}), \quad H^{(0)} = X, \qquad
        Z = \mathrm{softmax}(H^{(L-1)} W^{(L)} + b^{(L)})

    The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of every layer but the last.
        out_channels: Number of classes (C).
        num_layers: Number of linear maps (L).
        dropout: Dropout before each linear map.

    Shapes:
        x (n × d), dense or sparse → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        MLPConfig.check(hidden_channels=hidden_channels, num_layers=num_layers, dropout=dropout)
        self.dropout = dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.lins = nn.ModuleList(FeatureLinear(*pair) for pair in pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw new weights."""
        reset(self.lins)

    def forward(self, x: Matrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.lins[0](drop_entries(x, self.dropout, training=self.training))
        for lin in self.lins[1:]:
            h = lin(dropout(h.relu(), self.dropout, training=self.training))
        return h
