"""The graph attention network of Veličković et al. (2018)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn.inits import glorot, zeros
from torch_geometric.utils import add_remaining_self_loops, softmax

from gcnsl.nn.config import GATConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, drop_entries, dropout
from gcnsl.sparse import Matrix, fastest_form

SLOPE = 0.2
"""Of the leaky ReLU for negative scores, as in the paper."""


class GraphAttention(nn.Module):
    r"""One layer of attention over neighbours, with several heads side by side.

    .. math::
        h'_i = \big\Vert_k \sum_{j \in N(i)} \alpha^k_{ij} h_j W_k + b, \qquad
        \alpha^k_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\big(s_k \cdot h_j W_k + t_k \cdot h_i W_k\big)

    It computes the same as torch_geometric's ``GATConv``, with a linear map that accepts a sparse X. That one leaves a
    generated Python file in the temporary folder for every process.

    Shapes:
        x (n × in_channels), dense or sparse; edge_index (2 × E), loops included
        → n × (heads · out_channels).
    """

    def __init__(self, in_channels: int, out_channels: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.lin = FeatureLinear(in_channels, heads * out_channels, bias=False)
        self.attention = AttentionWeights(heads, out_channels)
        self.dropout = dropout

    def forward(self, x: Matrix, edge_index: Tensor) -> Tensor:
        """The heads side by side."""
        source, target = edge_index
        weights = self.attention
        h: Tensor = self.lin(x).unflatten(1, weights.att_src.shape[1:])  # n × heads × out_channels
        of_source, of_target = (h * weights.att_src).sum(dim=-1), (h * weights.att_dst).sum(dim=-1)
        scores = functional.leaky_relu(of_source[source] + of_target[target], SLOPE)
        shares = functional.dropout(softmax(scores, target, num_nodes=len(h)), self.dropout, self.training)
        attended = torch.zeros_like(h).index_add(0, target, shares.unsqueeze(-1) * h[source])
        return attended.flatten(1) + weights.bias


class AttentionWeights(nn.Module):
    """The vectors s and t of each head (1 × heads × channels) and the bias b (heads · channels)."""

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__()
        self.att_src = nn.Parameter(torch.empty(1, heads, channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, channels))
        self.bias = nn.Parameter(torch.empty(heads * channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        glorot(self.att_src)
        glorot(self.att_dst)
        zeros(self.bias)


@declared_by(GATConfig)
class GAT(GraphModel):
    r"""Two layers of attention over neighbours; the first has several heads, the second has one.

    .. math::
        h'_i = \sum_{j \in N(i) \cup \{i\}} \alpha_{ij} h_j W, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\big(a_s \cdot h_j W + a_t \cdot h_i W\big)

    There is an ELU between the layers. The forward pass returns the logits.

    Shapes:
        x (n × d), dense or sparse; edge_index (2 × E), loops included → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__()
        config = self.config = GATConfig(hidden_channels=hidden_channels, **options)
        heads, rate = config.heads, config.dropout
        self.first = GraphAttention(in_channels, hidden_channels, heads=heads, dropout=rate)
        self.second = GraphAttention(heads * hidden_channels, out_channels, heads=1, dropout=rate)

    @classmethod
    def inputs(cls, config: GATConfig, graph: Data, **_: Any) -> tuple[Matrix, ...]:
        """X, and the edges with a loop at every node."""
        edges, _ = add_remaining_self_loops(graph.edge_index, num_nodes=graph.num_nodes)
        return fastest_form(graph.x), edges

    def forward(self, x: Matrix, edge_index: Tensor) -> Tensor:
        """Logits of every node (n × C)."""
        rate = self.config.dropout
        h: Tensor = self.first(drop_entries(x, rate, training=self.training), edge_index)
        h = dropout(functional.elu(h), rate, training=self.training)
        logits: Tensor = self.second(h, edge_index)
        return logits
