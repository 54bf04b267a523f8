"""Geom-GCN (Pei et al., 2020): neighbours apart by space and direction."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.checks import check_at_least, check_dropout
from gcnsl.nn.config import Input
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import FeatureNorm, feature_matrix, normalize_features
from gcnsl.nn.sparse import SparseMatrix
from gcnsl.structure import SPACES_AND_RELATIONS, Embedding, Source, StructuralNeighbourhood, structural_neighbourhood

DIVISIONS = SPACES_AND_RELATIONS + 1
"""The last one holds each node itself."""


@dataclass(frozen=True)
class GeomGCNConfig:
    """Hyper-parameters of :class:`GeomGCN`.

    ``embedding`` is the latent space (``"isomap"`` is Geom-GCN-I, ``"poincare"`` -P, ``"struc2vec"`` -S) and ``source``
    whether its neighbourhoods are computed or those that Geom-GCN's authors published.
    """

    hidden_channels: int = 16
    dropout: float = 0.5
    embedding: Embedding = "isomap"
    source: Source = "computed"
    feature_norm: FeatureNorm = "row"

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """X and Â by division."""
        x = feature_matrix(normalize_features(data.x, self.feature_norm))
        return x, divided_adjacency(self.neighbourhood(data), data.num_nodes)

    def neighbourhood(self, data: Data) -> StructuralNeighbourhood:
        """The neighbourhood in use; its ``how`` says in one line what it is."""
        return structural_neighbourhood(data, embedding=self.embedding, source=self.source)

    def build(self, data: Data) -> "GeomGCN":
        """The model, its weights drawn from torch's generator."""
        return GeomGCN(data.num_features, self.hidden_channels, len(data.class_names), dropout=self.dropout)


def divided_adjacency(neighbourhood: StructuralNeighbourhood, num_nodes: int) -> SparseMatrix:
    """Â of all divisions in one matrix (9n × 9n): row 9i + r, column 9j + r for a neighbour j of i in division r.

    Entries are (d_i d_j)^-1/2, where d counts a node's neighbours in all divisions, itself among them.
    """
    (node, neighbour), division = neighbourhood.edge_index, neighbourhood.division.long()
    self = torch.arange(num_nodes)
    node, neighbour = torch.cat([node, self]), torch.cat([neighbour, self])
    division = torch.cat([division, torch.full_like(self, DIVISIONS - 1)])
    root = torch.bincount(node, minlength=num_nodes).to(torch.get_default_dtype()).rsqrt()
    places = torch.stack([DIVISIONS * node + division, DIVISIONS * neighbour + division])
    order = torch.argsort(places[0] * DIVISIONS * num_nodes + places[1])
    return SparseMatrix.from_edges(places[:, order], (root[node] * root[neighbour])[order], DIVISIONS * num_nodes)


class GeomConvolution(nn.Module):
    r"""One layer, :math:`\hat A_r X W_r` for every division r.

    Shapes:
        x (n × in_channels), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; adjacency, all Â_r (9n × 9n)
        → n × 9 × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.lin = FeatureLinear(in_channels, DIVISIONS * out_channels, bias=False, maps=DIVISIONS)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.lin.reset_parameters()

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix) -> Tensor:
        """The divisions of every node."""
        mapped: Tensor = self.lin(x)
        mixed = adjacency @ mapped.view(-1, self.out_channels)  # n × 9p → 9n × p
        return mixed.view(len(mapped), DIVISIONS, self.out_channels)


class GeomGCN(nn.Module):
    r"""Two layers with a linear map for each of nine divisions of a node's neighbours.

    .. math::
        H = \mathrm{ReLU}\Big(\big\Vert_r \hat A_r X W_r\Big), \qquad
        Z = \mathrm{softmax}\Big(\tfrac19 \sum_r \hat A_r H W'_r\Big)

    The divisions are neighbours in the graph and in a latent space, each by the quadrant of that space in which they
    lie from the node, and the node itself. The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Features of a node (d).
        hidden_channels: Columns of each W_r (p).
        out_channels: Classes.
        dropout: Before each layer.

    Shapes:
        x (n × d), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; adjacency, all Â_r (9n × 9n,
        :func:`divided_adjacency`) → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, *, dropout: float = 0.5) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_dropout(dropout=dropout)
        self.dropout = dropout
        self.first = GeomConvolution(in_channels, hidden_channels)
        self.second = GeomConvolution(DIVISIONS * hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.first(drop_entries(x, self.dropout, training=self.training), adjacency).flatten(1).relu()
        by_division: Tensor = self.second(dropout(h, self.dropout, training=self.training), adjacency)
        return by_division.mean(dim=1)
