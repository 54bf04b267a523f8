"""Geom-GCN (Pei et al., 2020): neighbours apart by space and direction."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.nn.config import ModelConfig, Precomputed, check_channels
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.options import option
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form
from gcnsl.structure import SPACES_AND_RELATIONS, Embedding, Source, StructuralNeighbourhood

DIVISIONS = SPACES_AND_RELATIONS + 1
"""The last one holds each node itself."""


@dataclass(frozen=True)
class GeomGCNConfig(ModelConfig):
    """Hyper-parameters of :class:`GeomGCN`.

    The neighbourhoods are given by the caller, as what was precomputed: to find them takes files and a cache, which
    this room knows nothing of.
    """

    hidden_channels: int = option(16, "Width of the hidden layer, for each of the nine divisions.", least=1)
    dropout: float = option(0.5, "Dropout before each layer.", least=0, below=1)
    embedding: Embedding = option("isomap", "The latent space: of Geom-GCN-I, -P or -S.")
    source: Source = option("computed", "Whether neighbourhoods are computed, or those that its authors published.")

    def from_state(
        self, plain: dict[str, Any], tensors: dict[str, Tensor], graph: Data, *, seed: int
    ) -> StructuralNeighbourhood:
        """The neighbourhoods as they were saved."""
        return StructuralNeighbourhood.from_state(plain, tensors)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X, and Â of every division."""
        if not isinstance(precomputed, StructuralNeighbourhood):
            raise InputError(
                "Geom-GCN needs structural neighbourhoods: gcnsl.structure.structural_neighbourhood(graph)"
            )
        return fastest_form(graph.x), divided_adjacency(precomputed, graph.num_nodes)

    def build(self, in_channels: int, out_channels: int) -> "GeomGCN":
        """The model for so many features and classes."""
        return GeomGCN(in_channels, self.hidden_channels, out_channels, dropout=self.dropout)


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
        x (n × in_channels), dense or sparse; adjacency, all Â_r (9n × 9n)
        → n × 9 × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.lin = FeatureLinear(in_channels, DIVISIONS * out_channels, bias=False, maps=DIVISIONS)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.lin.reset_parameters()

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
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
        in_channels: Number of features per node (d).
        hidden_channels: Columns of each W_r (p).
        out_channels: Number of classes (C).
        dropout: Before each layer.

    Shapes:
        x (n × d), dense or sparse; adjacency, all Â_r (9n × 9n,
        :func:`divided_adjacency`) → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, *, dropout: float = 0.5) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        GeomGCNConfig.check(hidden_channels=hidden_channels, dropout=dropout)
        self.dropout = dropout
        self.first = GeomConvolution(in_channels, hidden_channels)
        self.second = GeomConvolution(DIVISIONS * hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.first(drop_entries(x, self.dropout, training=self.training), adjacency).flatten(1).relu()
        by_division: Tensor = self.second(dropout(h, self.dropout, training=self.training), adjacency)
        return by_division.mean(dim=1)
