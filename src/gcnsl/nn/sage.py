"""GraphSAGE (Hamilton et al., 2017) with the mean as aggregator, of any depth."""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.nn.config import DirectedConfig, Precomputed, check_channels
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.hidden_norm import HiddenNorm, hidden_norm
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.options import option
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form


@dataclass(frozen=True)
class SAGEConfig(DirectedConfig):
    """Hyper-parameters of :class:`SAGE`."""

    hidden_channels: int = option(64, "Width of the hidden layers.", least=1)
    num_layers: int = option(2, "Number of convolutions.", least=1, most=64)
    dropout: float = option(0.5, "Dropout before each convolution.", least=0, below=1)
    drop_features: bool = option(True, "Whether there is dropout before the first convolution, too.")
    norm: HiddenNorm = option("none", "Normalisation before each ReLU: of columns (batch), of rows (layer) or none.")

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X and D⁻¹A, with the weights of the edges if they have some."""
        mean = graph_adjacency(graph, self_loops=False, norm="row", direction=self.direction)
        return fastest_form(graph.x), mean

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "SAGE":
        """The model for this number of features and classes."""
        return self.make(SAGE, in_channels=in_channels, out_channels=out_channels)


class SAGEConvolution(nn.Module):
    r"""One layer, :math:`X V + D^{-1} A X W + b`.

    It computes the same as torch_geometric's ``SAGEConv``, but maps X before it takes the means, so that A is
    multiplied by fewer columns, and X may be sparse.

    Shapes:
        x (n × in_channels), dense or sparse; mean D⁻¹A (n × n)
        → n × out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin_self = FeatureLinear(in_channels, out_channels)
        self.lin_neighbours = FeatureLinear(in_channels, out_channels, bias=False)

    def forward(self, x: Matrix, mean: SparseMatrix) -> Tensor:
        """X V + D⁻¹A X W + b."""
        layer: Tensor = self.lin_self(x) + mean @ self.lin_neighbours(x)
        return layer


class SAGE(nn.Module):
    r"""Convolutions that keep a node apart from the mean of its neighbours, with ReLU between them.

    .. math::
        H^{(l)} &= \mathrm{ReLU}\,\nu(H^{(l-1)} V^{(l)} + D^{-1} A H^{(l-1)} W^{(l)} + b^{(l)}), \quad H^{(0)} = X \\
        Z &= \mathrm{softmax}(H^{(L-1)} V^{(L)} + D^{-1} A H^{(L-1)} W^{(L)} + b^{(L)})

    All neighbours are used, not a sample of them. V is a linear skip already, so that with a normalisation ν and more
    layers this is the tuned GraphSAGE of Luo et al. (2024). The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of every layer but the last.
        out_channels: Number of classes (C).
        num_layers: Number of convolutions (L).
        dropout: Dropout before each convolution.
        drop_features: Whether there is dropout before the first convolution, too.
        norm: The normalisation ν, see :func:`gcnsl.nn.hidden_norm.hidden_norm`.

    Shapes:
        x (n × d), dense or sparse; mean D⁻¹A (n × n) → n × C.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        dropout: float = 0.5,
        drop_features: bool = True,
        norm: HiddenNorm = "none",
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        SAGEConfig.check(hidden_channels=hidden_channels, num_layers=num_layers, dropout=dropout)
        SAGEConfig.check(drop_features=drop_features, norm=norm)
        self.dropout, self.drop_features = dropout, drop_features
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(SAGEConvolution(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(hidden_norm(norm, width) for width in widths[1:-1])

    def reset_parameters(self) -> None:
        """Draw new weights."""
        reset(self.convs)
        reset(self.norms)

    def forward(self, x: Matrix, mean: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        first, *others = self.convs
        h: Tensor = first(drop_entries(x, self.dropout, training=self.training and self.drop_features), mean)
        for norm, conv in zip(self.norms, others, strict=True):
            h = conv(dropout(norm(h).relu(), self.dropout, training=self.training), mean)
        return h
