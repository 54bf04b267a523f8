"""GraphSAGE (Hamilton et al., 2017) with the mean as aggregator, of any depth."""

from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import SAGEConfig
from gcnsl.nn.graph_model import FeatureLinear, RelationalLinear, declared_by
from gcnsl.nn.preprocessing import by_relation, graph_adjacency
from gcnsl.nn.residual import Convolutions
from gcnsl.sparse import Matrix, SparseMatrix


class SAGEConvolution(nn.Module):
    r"""One layer, :math:`X V + D^{-1} A X W + b`, or :math:`X V + \sum_r D_r^{-1} A_r X W_r + b` of several relations.

    It computes the same as torch_geometric's ``SAGEConv``, and of several relations as ``RGCNConv``, but maps X before
    it takes the means, so that A is multiplied by fewer columns, and X may be sparse.

    Shapes:
        x (n × in_channels), dense or sparse; means D⁻¹A (n × n each) → n × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int, relations: int = 1) -> None:
        super().__init__()
        self.lin_self = FeatureLinear(in_channels, out_channels)
        self.lin_neighbours = RelationalLinear(in_channels, out_channels, relations)

    def forward(self, x: Matrix, *means: SparseMatrix) -> Tensor:
        """X V + D⁻¹A X W + b."""
        return self.lin_self(x) + self.lin_neighbours(x, *means)


@declared_by(SAGEConfig)
class SAGE(Convolutions):
    r"""Convolutions that keep a node apart from the mean of its neighbours, with ReLU between them.

    .. math::
        H^{(l)} &= \mathrm{ReLU}\,\nu(H^{(l-1)} V^{(l)} + D^{-1} A H^{(l-1)} W^{(l)} + b^{(l)}), \quad H^{(0)} = X \\
        Z &= \mathrm{softmax}(H^{(L-1)} V^{(L)} + D^{-1} A H^{(L-1)} W^{(L)} + b^{(L)})

    All neighbours are used, not a sample of them. V is a linear skip already, so that with a normalisation ν and more
    layers this is the tuned GraphSAGE of Luo et al. (2024). With ``blocks``, it is that many
    :class:`gcnsl.nn.residual.ResidualBlocks` instead. Edges of several relations have an A and a W each.

    Shapes:
        x (n × d), dense or sparse; means D⁻¹A (n × n), one of each relation → n × C.
    """

    convolution, keeps_itself = SAGEConvolution, True

    @classmethod
    def matrices(cls, config: SAGEConfig, graph: Data) -> tuple[Matrix, ...]:
        """D⁻¹A of each relation."""
        options: dict[str, Any] = {"self_loops": False, "norm": "row", "direction": config.direction}
        return tuple(graph_adjacency(part, **options) for part in by_relation(graph))
