"""FSGNN (Maurya et al., 2022): a soft selection among the features of all hops, with and without loops."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gcnsl.nn.config import FSGNNConfig
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, dropout
from gcnsl.nn.mixhop import MixHopConvolution
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.sparse import Matrix, SparseMatrix


@declared_by(FSGNNConfig)
class FSGNN(GraphModel):
    r"""Linear maps of X, of Âᵏ X without loops and of Ãᵏ X with loops, each with a learned scale.

    .. math::
        S &= \big(X, \hat A X, \dots, \hat A^K X, \tilde A X, \dots, \tilde A^K X\big) \\
        H &= \mathrm{ReLU}\Big(\big\Vert_{m=0}^{2K} \mathrm{softmax}(a)_m \,\mathrm{norm}(S_m W_m + b_m)\Big) \\
        Z &= \mathrm{softmax}(H W_c + b_c)

    Â and Ã are D^-1/2 A D^-1/2 with the sums of A's rows in D, even if A is not symmetric, as in the authors' code.
    norm divides each row by its length. The authors compute S beforehand; here Âᵏ is multiplied by X W_m, which gives
    the same, is faster if there are many features, and needs no dense S.

    Shapes:
        x (n × d), dense or sparse; plain Â and looped Ã (n × n) → n × C. H has (2K + 1) p columns.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        hops = self.config.hops
        self.plain = MixHopConvolution(in_channels, hidden_channels, tuple(range(hops + 1)))
        self.looped = MixHopConvolution(in_channels, hidden_channels, tuple(range(1, hops + 1)))
        self.selection = nn.Parameter(torch.ones(2 * hops + 1))
        self.lin_out = FeatureLinear((2 * hops + 1) * hidden_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; all features start with the same scale."""
        for conv in (self.plain, self.looped):
            conv.reset_parameters()
            nn.init.uniform_(conv.bias, -0.1, 0.1)  # a row of zeros has no direction, and a huge gradient
        nn.init.ones_(self.selection)
        self.lin_out.reset_parameters()

    @classmethod
    def matrices(cls, config: FSGNNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â without and with loops."""
        options: dict[str, Any] = {"norm": "row-sums", "direction": config.direction}
        return tuple(graph_adjacency(graph, self_loops=loops, **options) for loops in (False, True))

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The parameters for the optimizer; a has a learning rate and weight decay of its own."""
        others = [value for name, value in self.named_parameters() if name != "selection"]
        own = {"lr": self.config.selection_lr, "weight_decay": self.config.selection_weight_decay}
        return [{"params": others, "weight_decay": weight_decay}, {"params": [self.selection], **own}]

    def logits(self, x: Matrix, plain: SparseMatrix, looped: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h = torch.cat([self.plain(x, plain), self.looped(x, looped)], dim=1)
        kinds = functional.normalize(h.view(len(h), -1, self.config.hidden_channels), dim=2)  # n × (2K + 1) × p
        selected = (self.selection.softmax(dim=0)[:, None] * kinds).flatten(1).relu()
        return self.lin_out(dropout(selected, self.config.dropout, training=self.training))
