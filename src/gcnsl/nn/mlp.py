"""The multi-layer perceptron, which classifies by the features alone."""

from itertools import pairwise
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import MLPConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, drop_entries, dropout
from gcnsl.sparse import Matrix


@declared_by(MLPConfig)
class MLP(GraphModel):
    r"""Linear maps with ReLU between them.

    .. math::
        H^{(l)} = \mathrm{ReLU}(H^{(l-1)} W^{(l)} + b^{(l)}), \quad H^{(0)} = X, \qquad
        Z = \mathrm{softmax}(H^{(L-1)} W^{(L)} + b^{(L)})

    Shapes:
        x (n × d), dense or sparse → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        self.reads_edges, config = False, self.config
        widths = [in_channels, *[hidden_channels] * (config.num_layers - 1), out_channels]
        self.lins = nn.ModuleList(FeatureLinear(*pair) for pair in pairwise(widths))

    @classmethod
    def matrices(cls, config: MLPConfig, graph: Data) -> tuple[Matrix, ...]:
        """Nothing: edges are ignored."""
        return ()

    def logits(self, x: Matrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.lins[0](drop_entries(x, self.config.dropout, training=self.training))
        for lin in self.lins[1:]:
            h = lin(dropout(h.relu(), self.config.dropout, training=self.training))
        return h
