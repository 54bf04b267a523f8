"""LINKX (Lim et al., 2021): the rows of A as features, beside X."""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.nn.config import DirectedConfig, Precomputed, check_channels
from gcnsl.nn.dropout import dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import Direction, FeatureNorm, links_to_known
from gcnsl.options import option
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form


@dataclass(frozen=True)
class LINKXConfig(DirectedConfig):
    """Hyper-parameters of :class:`LINKX`."""

    feature_norm: FeatureNorm = option("none", DirectedConfig.described()[0].meaning)
    direction: Direction = option("out", DirectedConfig.described()[-1].meaning)
    hidden_channels: int = option(64, "Width of all layers but the last.", least=1)
    link_layers: int = option(1, "Number of linear maps of MLP_A.", least=1, most=64)
    feature_layers: int = option(1, "Number of linear maps of MLP_X.", least=1, most=64)
    num_layers: int = option(2, "Number of linear maps of MLP_f.", least=1, most=64)
    dropout: float = option(0.5, "Dropout before each linear map of MLP_f but the first.", least=0, below=1)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X, and the links of each node to the nodes of the training graph, with their weights if they have some."""
        return fastest_form(graph.x), links_to_known(graph, self.direction)

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "LINKX":
        """The model for this number of features, classes and nodes."""
        return self.make(LINKX, in_channels=in_channels, out_channels=out_channels, num_nodes=num_nodes)


class NormalizedMLP(nn.Module):
    """Linear maps with ReLU, batch normalisation and dropout between them, in this order.

    It computes the same as torch_geometric's ``MLP`` with ``act_first=True``, but X may be sparse.

    Shapes:
        x (n × widths[0]), dense or sparse → n × widths[-1].
    """

    def __init__(self, widths: list[int], *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.lins = nn.ModuleList(FeatureLinear(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    def forward(self, x: Matrix) -> Tensor:
        """The output of the last linear map."""
        first, *others = self.lins
        h: Tensor = first(x)
        for norm, lin in zip(self.norms, others, strict=True):
            h = lin(dropout(norm(h.relu()), self.dropout, training=self.training))
        return h


class LINKX(nn.Module):
    r"""A perceptron of the rows of A, one of the rows of X, and one of both together; no node sees a neighbour's X.

    .. math::
        H_A &= \mathrm{MLP}_A(A), \qquad H_X = \mathrm{MLP}_X(X) \\
        Z &= \mathrm{softmax}\,\mathrm{MLP}_f\big(\mathrm{ReLU}((H_A \,\|\, H_X)\, W + b + H_A + H_X)\big)

    It computes the same as torch_geometric's ``LINKX``, but X may be sparse, and nodes may be added later: they are
    known by their links to the nodes of the training graph. The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of all layers but the last (p).
        out_channels: Number of classes (C).
        num_nodes: Number of nodes of the training graph (N).
        link_layers: Number of linear maps of MLP_A.
        feature_layers: Number of linear maps of MLP_X.
        num_layers: Number of linear maps of MLP_f.
        dropout: Dropout before each linear map of MLP_f but the first.

    Shapes:
        x (n × d), dense or sparse; links A (n × N) → n × C. H_A and H_X have p columns.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_nodes: int,
        *,
        link_layers: int = 1,
        feature_layers: int = 1,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels, num_nodes=num_nodes)
        LINKXConfig.check(hidden_channels=hidden_channels, link_layers=link_layers, feature_layers=feature_layers)
        LINKXConfig.check(num_layers=num_layers, dropout=dropout)
        self.mlp_links = NormalizedMLP([num_nodes, *[hidden_channels] * link_layers])
        self.mlp_x = NormalizedMLP([in_channels, *[hidden_channels] * feature_layers])
        self.mix_links = FeatureLinear(hidden_channels, hidden_channels, bias=False)
        self.mix_x = FeatureLinear(hidden_channels, hidden_channels)
        self.mlp_final = NormalizedMLP([*[hidden_channels] * num_layers, out_channels], dropout=dropout)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for part in self.children():
            reset(part)

    def forward(self, x: Matrix, links: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        from_links, from_x = self.mlp_links(links), self.mlp_x(x)
        mixed = self.mix_links(from_links) + self.mix_x(from_x)  # (H_A ‖ H_X) W + b
        logits: Tensor = self.mlp_final((mixed + from_links + from_x).relu())
        return logits
