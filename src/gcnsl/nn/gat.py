"""The graph attention network of Veličković et al. (2018)."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv
from torch_geometric.nn.inits import reset
from torch_geometric.utils import add_remaining_self_loops

from gcnsl.nn.config import ModelConfig, Precomputed, check_channels
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.options import option
from gcnsl.sparse import Matrix, fastest_form


@dataclass(frozen=True)
class GATConfig(ModelConfig):
    """Hyper-parameters of :class:`GAT`."""

    hidden_channels: int = option(8, "Width of each head of the first layer.", least=1)
    heads: int = option(8, "Number of heads of the first layer.", least=1)
    dropout: float = option(0.6, "Dropout before each layer and on the attention.", least=0, below=1)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X, and the edges with a loop at every node."""
        edges, _ = add_remaining_self_loops(graph.edge_index, num_nodes=graph.num_nodes)
        return fastest_form(graph.x), edges

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "GAT":
        """The model for this number of features and classes."""
        return self.make(GAT, in_channels=in_channels, out_channels=out_channels)


class GraphAttention(nn.Module):
    """torch_geometric's ``GATConv`` with a linear map that accepts a sparse X.

    Shapes:
        x (n × in_channels), dense or sparse; edge_index (2 × E), loops included
        → n × (heads · out_channels).
    """

    def __init__(self, in_channels: int, out_channels: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.lin = FeatureLinear(in_channels, heads * out_channels, bias=False)
        self.attention = GATConv(heads * out_channels, out_channels, heads, dropout=dropout, add_self_loops=False)
        self.attention.lin = _Unchanged()

    def forward(self, x: Matrix, edge_index: Tensor) -> Tensor:
        """The heads side by side."""
        attended: Tensor = self.attention(self.lin(x), edge_index)
        return attended


class _Unchanged(nn.Identity):
    """Takes the place of the convolution's linear map, which has already been applied."""

    def reset_parameters(self) -> None:
        """There is nothing to draw."""


class GAT(nn.Module):
    r"""Two layers of attention over neighbours; the first has several heads, the second has one.

    .. math::
        h'_i = \sum_{j \in N(i) \cup \{i\}} \alpha_{ij} h_j W, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\big(a_s \cdot h_j W + a_t \cdot h_i W\big)

    There is an ELU between the layers. The forward pass returns the logits.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Columns of W for each head of the first layer.
        out_channels: Number of classes (C).
        heads: Number of heads of the first layer.
        dropout: Dropout before each layer and on the attention α.

    Shapes:
        x (n × d), dense or sparse; edge_index (2 × E), loops included → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, heads: int = 8, dropout: float = 0.6
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        GATConfig.check(hidden_channels=hidden_channels, heads=heads, dropout=dropout)
        self.dropout = dropout
        self.first = GraphAttention(in_channels, hidden_channels, heads=heads, dropout=dropout)
        self.second = GraphAttention(heads * hidden_channels, out_channels, heads=1, dropout=dropout)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        reset(self.first)
        reset(self.second)

    def forward(self, x: Matrix, edge_index: Tensor) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.first(drop_entries(x, self.dropout, training=self.training), edge_index)
        h = dropout(functional.elu(h), self.dropout, training=self.training)
        logits: Tensor = self.second(h, edge_index)
        return logits
