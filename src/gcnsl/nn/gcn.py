"""The graph convolutional network of Kipf and Welling (2017), of any depth, plain or tuned."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import GCNConfig
from gcnsl.nn.graph_model import RelationalLinear, declared_by
from gcnsl.nn.preprocessing import by_relation, graph_adjacency, normalized_adjacency
from gcnsl.nn.residual import Convolutions
from gcnsl.sparse import Matrix, SparseMatrix


class GraphConvolution(nn.Module):
    r"""One layer, :math:`\hat A X W + b`, or :math:`\sum_r \hat A_r X W_r + b` of several relations.

    It computes the same as torch_geometric's ``GCNConv``, but Â is made only once, the backward pass multiplies by a
    stored transpose, and X may be sparse.

    Shapes:
        x (n × in_channels), dense or sparse; adjacencies Â (n × n each) → n × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int, relations: int = 1) -> None:
        super().__init__()
        self.lin = RelationalLinear(in_channels, out_channels, relations)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def reset_parameters(self) -> None:
        """Draw new weights; the bias starts at 0."""
        self.lin.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(self, x: Matrix, *adjacencies: SparseMatrix) -> Tensor:
        """Â X W + b."""
        return self.lin(x, *adjacencies) + self.bias


@declared_by(GCNConfig)
class GCN(Convolutions):
    r"""Graph convolutions with ReLU between them, and what makes deep ones trainable: linear skips and normalisation.

    .. math::
        H^{(l)} &= \mathrm{ReLU}\,\nu(\hat A H^{(l-1)} W^{(l)} + b^{(l)} + H^{(l-1)} V^{(l)}), \quad H^{(0)} = X \\
        Z &= \mathrm{softmax}(\hat A H^{(L-1)} W^{(L)} + b^{(L)} + H^{(L-1)} V^{(L)})

    The GCN of Kipf and Welling has neither the normalisation ν nor the skips V. With both and 4 to 15 layers, it is the
    tuned GCN of Luo et al. (2024). With ``blocks``, it is that many :class:`gcnsl.nn.residual.ResidualBlocks` instead.
    Edges of several relations have an Â without loops and a W each, and the node itself has another W in place of the
    loops, as in the R-GCN of Schlichtkrull et al. (2018).

    Shapes:
        x (n × d), dense or sparse; adjacencies Â (n × n), I and one of each relation → n × C.
    """

    convolution = GraphConvolution

    @classmethod
    def matrices(cls, config: GCNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â, or I if there are to be loops, and Â of each relation."""
        parts = by_relation(graph)
        if len(parts) == 1:
            return (graph_adjacency(graph, self_loops=config.self_loops, norm=config.adjacency_norm),)
        own = [normalized_adjacency(graph.edge_index[:, :0], graph.num_nodes)] if config.self_loops else []
        return *own, *(graph_adjacency(part, self_loops=False, norm=config.adjacency_norm) for part in parts)
