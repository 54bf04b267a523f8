"""Geom-GCN (Pei et al., 2020), which divides the neighbours of a node by space and direction."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.datasets.neighbourhoods import SPACES_AND_RELATIONS, StructuralNeighbourhood, structural_neighbourhood
from gcnsl.nn.config import Folder, GeomGCNConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, drop_entries, dropout
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form

DIVISIONS = SPACES_AND_RELATIONS + 1
"""The last division holds the node itself."""


def divided_adjacency(neighbourhood: StructuralNeighbourhood, num_nodes: int) -> SparseMatrix:
    """The Â_r of all divisions in one matrix (9n × 9n).

    If j is a neighbour of i in division r, the entry in row 9i + r and column 9j + r is (d_i d_j)^-1/2, where d counts
    the neighbours of a node in all divisions, including the node itself.
    """
    (node, neighbour), division = neighbourhood.edge_index, neighbourhood.division.long()
    every = torch.arange(num_nodes)
    node, neighbour = torch.cat([node, every]), torch.cat([neighbour, every])
    division = torch.cat([division, torch.full_like(every, DIVISIONS - 1)])
    root = torch.bincount(node, minlength=num_nodes).to(torch.get_default_dtype()).rsqrt()
    places = torch.stack([DIVISIONS * node + division, DIVISIONS * neighbour + division])
    order = torch.argsort(places[0] * DIVISIONS * num_nodes + places[1])
    return SparseMatrix.from_edges(places[:, order], (root[node] * root[neighbour])[order], DIVISIONS * num_nodes)


class GeomConvolution(nn.Module):
    r"""One layer, :math:`\hat A_r X W_r` for every division r.

    Shapes:
        x (n × in_channels), dense or sparse; adjacency, see :func:`divided_adjacency` (9n × 9n) → n × 9 × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.lin = FeatureLinear(in_channels, DIVISIONS * out_channels, bias=False, maps=DIVISIONS)

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Â_r X W_r for every division r."""
        mixed = adjacency @ self.lin(x).view(-1, self.out_channels)  # n × 9p → 9n × p
        return mixed.view(len(x), DIVISIONS, self.out_channels)


@declared_by(GeomGCNConfig)
class GeomGCN(GraphModel):
    r"""Two layers with a linear map for each of nine divisions of a node's neighbours.

    .. math::
        H = \mathrm{ReLU}\Big(\big\Vert_r \hat A_r X W_r\Big), \qquad
        Z = \mathrm{softmax}\Big(\tfrac19 \sum_r \hat A_r H W'_r\Big)

    Neighbours in the graph and neighbours in a latent space are each divided by the quadrant of that space in which
    they lie, seen from the node; the ninth division is the node itself.

    Shapes:
        x (n × d), dense or sparse; adjacency, see :func:`divided_adjacency` (9n × 9n) → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        self.first = GeomConvolution(in_channels, hidden_channels)
        self.second = GeomConvolution(DIVISIONS * hidden_channels, out_channels)

    @classmethod
    def precompute(cls, config: Any, graph: Data, *, seed: int, root: Folder = None) -> StructuralNeighbourhood:
        """The neighbourhoods, read or computed; the same graph always gets the same ones, whatever the seed."""
        options: dict[str, Any] = {"embedding": config.embedding, "source": config.source, "root": root}
        benchmark = graph.get("benchmark")
        return structural_neighbourhood(graph.edge_index, graph.num_nodes, benchmark=benchmark, **options)

    @classmethod
    def from_state(cls, config: Any, plain: Any, tensors: dict[str, Tensor], graph: Data) -> StructuralNeighbourhood:
        """The saved neighbourhoods."""
        return StructuralNeighbourhood(tensors["edge_index"], tensors["division"], plain["how"])

    @classmethod
    def matrices(cls, config: GeomGCNConfig, graph: Data) -> tuple[Matrix, ...]:
        """The Â of all divisions."""
        return (divided_adjacency(cls.precompute(config, graph, seed=0), graph.num_nodes),)

    @classmethod
    def inputs(cls, config: Any, graph: Data, *, precomputed: Any, seed: int) -> tuple[Matrix, ...]:
        """X, and the Â of all divisions."""
        return fastest_form(graph.x), divided_adjacency(precomputed, graph.num_nodes)

    def logits(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        rate = self.config.dropout
        h = self.first(drop_entries(x, rate, training=self.training), adjacency).flatten(1).relu()
        by_division: Tensor = self.second(dropout(h, rate, training=self.training), adjacency)
        return by_division.mean(dim=1)
