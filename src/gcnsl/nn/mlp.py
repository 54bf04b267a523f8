"""The multi-layer perceptron: classification by the features alone."""

from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.nn.checks import check_at_least, check_dropout
from gcnsl.nn.config import Input
from gcnsl.nn.dropout import drop_entries, dropout
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.preprocessing import FeatureNorm, feature_matrix, normalize_features
from gcnsl.nn.sparse import SparseMatrix


@dataclass(frozen=True)
class MLPConfig:
    """Hyper-parameters of :class:`MLP`; ``feature_norm`` is what X is divided by."""

    hidden_channels: int = 64
    num_layers: int = 2
    dropout: float = 0.5
    feature_norm: FeatureNorm = "row"

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """X; edges are not looked at."""
        return (feature_matrix(normalize_features(data.x, self.feature_norm)),)

    def build(self, data: Data) -> "MLP":
        """The model, its weights drawn from torch's generator."""
        return MLP(
            data.num_features,
            self.hidden_channels,
            len(data.class_names),
            num_layers=self.num_layers,
            dropout=self.dropout,
        )


class MLP(nn.Module):
    r"""Linear maps with ReLU between them.

    .. math::
        H^{(l)} = \mathrm{ReLU}(H^{(l-1)} W^{(l)} + b^{(l)}), \quad H^{(0)} = X, \qquad
        Z = \mathrm{softmax}(H^{(L-1)} W^{(L)} + b^{(L)})

    The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Features of a node (d).
        hidden_channels: Width of every layer but the last.
        out_channels: Classes.
        num_layers: Linear maps (L), at least 1.
        dropout: Before every linear map.

    Shapes:
        x (n × d), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix` → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, num_layers: int = 2, dropout: float = 0.5
    ) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_at_least(1, num_layers=num_layers)
        check_dropout(dropout=dropout)
        self.dropout = dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.lins = nn.ModuleList(FeatureLinear(*pair) for pair in pairwise(widths))

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        reset(self.lins)

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h: Tensor = self.lins[0](drop_entries(x, self.dropout, training=self.training))
        for lin in self.lins[1:]:
            h = lin(dropout(h.relu(), self.dropout, training=self.training))
        return h
