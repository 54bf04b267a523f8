"""Dir-GNN (Rossi et al., 2023) with graph convolutions: a weight for each direction of the edges."""

from itertools import pairwise
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import JumpingKnowledge

from gcnsl.nn.config import Direction, DirGCNConfig
from gcnsl.nn.gcn import GraphConvolution
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, dropout
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.sparse import Matrix, SparseMatrix


class DirectedConvolution(nn.Module):
    r"""One layer, :math:`\alpha (\hat A_{out} X W_{out} + b_{out}) + (1 - \alpha)(\hat A_{in} X W_{in} + b_{in})`.

    It differs from torch_geometric's ``DirGNNConv`` with a ``GCNConv`` in that an arc is divided by the roots of an
    out-degree and an in-degree, as the authors do, both matrices are made only once, and X may be sparse. A direction
    whose share is 0 has no weights.

    Shapes:
        x (n × in_channels), dense or sparse; outwards Â_out and inwards Â_in (n × n) → n × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int, alpha: float) -> None:
        super().__init__()
        self.shares = {name: share for name, share in (("out", alpha), ("in", 1 - alpha)) if share > 0}
        self.convs = nn.ModuleDict({name: GraphConvolution(in_channels, out_channels) for name in self.shares})

    def forward(self, x: Matrix, outwards: SparseMatrix, inwards: SparseMatrix) -> Tensor:
        """The weighted sum over both directions."""
        adjacencies = {"out": outwards, "in": inwards}
        first, *others = (share * self.convs[name](x, adjacencies[name]) for name, share in self.shares.items())
        total: Tensor = sum(others, start=first)
        return total


@declared_by(DirGCNConfig)
class DirGCN(GraphModel):
    r"""Layers with a weight for each direction of the edges. The classifier sees all layers.

    .. math::
        H^{(l)} &= \mathrm{norm}\,\mathrm{ReLU}\big(\alpha (\hat A_{out} H^{(l-1)} W^{(l)}_{out} + b^{(l)}_{out})
            + (1 - \alpha)(\hat A_{in} H^{(l-1)} W^{(l)}_{in} + b^{(l)}_{in})\big), \quad H^{(0)} = X \\
        Z &= \mathrm{softmax}\big(\max(H^{(1)}, \dots, H^{(L)})\, W_c + b_c\big)

    Â_out = D_out^-1/2 A D_in^-1/2 without loops, where A_ij = 1 for an arc from i to j, and Â_in is its transpose; norm
    divides each row by its length or does nothing. Instead of the maximum, the layers may stand side by side.

    Shapes:
        x (n × d), dense or sparse; outwards Â_out and inwards Â_in (n × n) → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config = self.config
        widths = [in_channels, *[hidden_channels] * config.num_layers]
        self.convs = nn.ModuleList(DirectedConvolution(*pair, config.alpha) for pair in pairwise(widths))
        self.jump = JumpingKnowledge(config.jump)
        self.lin_out = FeatureLinear(hidden_channels * (config.num_layers if config.jump == "cat" else 1), out_channels)

    @classmethod
    def matrices(cls, config: DirGCNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â_out and Â_in; in an undirected graph both are Â."""
        directions: tuple[Direction, Direction] = ("out", "in")
        return tuple(graph_adjacency(graph, self_loops=False, norm="symmetric", direction=each) for each in directions)

    def logits(self, x: Matrix, outwards: SparseMatrix, inwards: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h, layers = x, []
        for conv in self.convs:
            h = dropout(conv(h, outwards, inwards).relu(), self.config.dropout, training=self.training)
            h = functional.normalize(h, dim=1) if self.config.unit_rows else h
            layers.append(h)
        return self.lin_out(self.jump(layers))
