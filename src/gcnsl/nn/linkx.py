"""LINKX (Lim et al., 2021): the rows of A as features, beside X."""

from itertools import pairwise
from typing import Any

import scipy.sparse as sp
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import LINKXConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, dropout
from gcnsl.nn.preprocessing import by_relation, links_to_known
from gcnsl.sparse import Matrix, SparseMatrix, from_scipy, to_scipy


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


@declared_by(LINKXConfig)
class LINKX(GraphModel):
    r"""A perceptron of the rows of A, one of the rows of X, and one of both together; no node sees a neighbour's X.

    .. math::
        H_A &= \mathrm{MLP}_A(A), \qquad H_X = \mathrm{MLP}_X(X) \\
        Z &= \mathrm{softmax}\,\mathrm{MLP}_f\big(\mathrm{ReLU}((H_A \,\|\, H_X)\, W + b + H_A + H_X)\big)

    It computes the same as torch_geometric's ``LINKX``, but X may be sparse, and nodes may be added later: they are
    known by their links to the nodes of the training graph. The A of several relations are side by side.

    Shapes:
        x (n × d), dense or sparse; links A (n × R N) → n × C. H_A and H_X have p columns.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_nodes: int,
        *,
        num_relations: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config = self.config
        self.mlp_links = NormalizedMLP([num_relations * num_nodes, *[hidden_channels] * config.link_layers])
        self.mlp_x = NormalizedMLP([in_channels, *[hidden_channels] * config.feature_layers])
        self.mix_links = FeatureLinear(hidden_channels, hidden_channels, bias=False)
        self.mix_x = FeatureLinear(hidden_channels, hidden_channels)
        self.mlp_final = NormalizedMLP([*[hidden_channels] * config.num_layers, out_channels], dropout=config.dropout)

    @classmethod
    def matrices(cls, config: LINKXConfig, graph: Data) -> tuple[Matrix, ...]:
        """The links of each node to the nodes of the training graph, relation by relation."""
        parts = [links_to_known(part, config.direction) for part in by_relation(graph)]
        if len(parts) == 1:
            return tuple(parts)
        return (SparseMatrix(from_scipy(sp.hstack([to_scipy(part) for part in parts], format="csr"))),)

    def logits(self, x: Matrix, links: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        from_links, from_x = self.mlp_links(links), self.mlp_x(x)
        mixed = self.mix_links(from_links) + self.mix_x(from_x)  # (H_A ‖ H_X) W + b
        logits: Tensor = self.mlp_final((mixed + from_links + from_x).relu())
        return logits
