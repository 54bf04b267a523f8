"""The graph attention network of Veličković et al. (2018)."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn.inits import glorot
from torch_geometric.utils import add_remaining_self_loops, softmax

from gcnsl.nn.config import GATConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, drop_entries, dropout
from gcnsl.nn.residual import ResidualBlocks
from gcnsl.sparse import Matrix


class GraphAttention(nn.Module):
    r"""One layer of attention over neighbours, with several heads side by side.

    .. math::
        h'_i = \big\Vert_k \sum_{j \in N(i)} \alpha^k_{ij} h_j W_k + b, \qquad
        \alpha^k_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\big(s_k \cdot h_j W_k + t_k \cdot h_i W_k\big)

    It computes the same as torch_geometric's ``GATConv``, with a linear map that accepts a sparse X. That one leaves a
    generated Python file in the temporary folder for every process.

    Shapes:
        x (n × in_channels), dense or sparse; source and target of the edges (E each), loops included; perhaps factors
        of what is passed along them (E) → n × (heads · out_channels).
    """

    def __init__(self, in_channels: int, out_channels: int, *, heads: int, dropout: float) -> None:
        super().__init__()
        self.lin = FeatureLinear(in_channels, heads * out_channels, bias=False)
        vectors = ((name, torch.empty(1, heads, out_channels)) for name in ("att_src", "att_dst"))  # s and t
        self.attention = nn.ParameterDict([*vectors, ("bias", torch.empty(heads * out_channels))])
        self.dropout = dropout
        self._draw_attention()

    def reset_parameters(self) -> None:
        """Draw new weights; the bias starts at 0."""
        self.lin.reset_parameters()
        self._draw_attention()

    def _draw_attention(self) -> None:
        glorot(self.attention["att_src"])
        glorot(self.attention["att_dst"])
        nn.init.zeros_(self.attention["bias"])

    def forward(self, x: Matrix, source: Tensor, target: Tensor, factors: Tensor | None = None) -> Tensor:
        """The heads side by side."""
        to_source, to_target, bias = (self.attention[name] for name in ("att_src", "att_dst", "bias"))
        h = self.lin(x).view(-1, *to_source.shape[1:])  # n × heads × out_channels
        of_source, of_target = (h * to_source).sum(dim=-1), (h * to_target).sum(dim=-1)
        scores = functional.leaky_relu(of_source[source] + of_target[target], negative_slope=0.2)
        shares = functional.dropout(softmax(scores, target, num_nodes=len(h)), self.dropout, self.training)
        shares = shares if factors is None else shares * factors[:, None]
        attended: Tensor = torch.zeros_like(h).index_add(0, target, shares.unsqueeze(-1).to(h.dtype) * h[source])
        out: Tensor = attended.flatten(1) + bias
        return out


@declared_by(GATConfig)
class GAT(GraphModel):
    r"""Two layers of attention over neighbours; the first has several heads, the second has one.

    .. math::
        h'_i = \sum_{j \in N(i) \cup \{i\}} \alpha_{ij} h_j W, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}\big(a_s \cdot h_j W + a_t \cdot h_i W\big)

    There is an ELU between the layers. With ``blocks``, it is that many :class:`gcnsl.nn.residual.ResidualBlocks` of
    all heads' width instead.

    Shapes:
        x (n × d), dense or sparse; source and target of the edges (E each), loops included → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config = self.config
        heads, rate = config.heads, config.dropout
        if config.blocks:
            width = heads * hidden_channels
            conv = partial(GraphAttention, width, hidden_channels, heads=heads, dropout=0.0)
            self.blocks = ResidualBlocks(conv, in_channels, width, out_channels, config, skip=True)
            return
        self.first = GraphAttention(in_channels, hidden_channels, heads=heads, dropout=rate)
        self.second = GraphAttention(heads * hidden_channels, out_channels, heads=1, dropout=rate)

    @classmethod
    def matrices(cls, config: GATConfig, graph: Data) -> tuple[Matrix, ...]:
        """The edges with a loop at every node."""
        (source, target), _ = add_remaining_self_loops(graph.edge_index, num_nodes=graph.num_nodes)
        return source, target

    def masked(self, edge_index: Tensor, x: Matrix, *ends: Any) -> tuple[Any, ...]:
        """Prepared inputs with the mask that an explainer has put on the edges."""
        source, target = ends
        return x, source, target, self._edge_mask.factors(source, target, edge_index, len(x))

    def logits(self, x: Matrix, *graph: Tensor) -> Tensor:
        """Logits of every node (n × C)."""
        if self.config.blocks:
            return self.blocks(x, *graph)
        rate = self.config.dropout
        h: Tensor = self.first(drop_entries(x, rate, training=self.training), *graph)
        h = dropout(functional.elu(h), rate, training=self.training)
        logits: Tensor = self.second(h, *graph)
        return logits
