"""GPR-GNN (Chien et al., 2021): generalised PageRank with learned weights."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import GPRGNNConfig
from gcnsl.nn.graph_model import GraphModel, declared_by, dropout
from gcnsl.nn.mlp import MLP
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.sparse import Matrix, SparseMatrix


@declared_by(GPRGNNConfig)
class GPRGNN(GraphModel):
    r"""A perceptron with two layers, and a weighted sum of what the powers of Â make of its output.

    .. math::
        Z = \mathrm{softmax}\Big(\sum_{k=0}^{K} \gamma_k \hat A^k\, \mathrm{MLP}(X)\Big)

    The weights γ are learned and may be negative. They start as those of personalised PageRank, γ_k = α (1 - α)^k for k
    < K and γ_K = (1 - α)^K, and have no weight decay.

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n) → n × C.
    """

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config = self.config
        self.mlp = MLP(in_channels, hidden_channels, out_channels, dropout=config.dropout)
        self.gamma = nn.Parameter(torch.empty(config.hops + 1))
        self._start_as_pagerank()

    def reset_parameters(self) -> None:
        """Draw new weights; γ starts as PageRank."""
        self.mlp.reset_parameters()
        self._start_as_pagerank()

    @classmethod
    def matrices(cls, config: GPRGNNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â with loops."""
        return (graph_adjacency(graph, self_loops=True, norm="symmetric"),)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The parameters for the optimizer; γ has no weight decay."""
        return [
            {"params": list(self.mlp.parameters()), "weight_decay": weight_decay},
            {"params": [self.gamma], "weight_decay": 0.0},
        ]

    def logits(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h = dropout(self.mlp(x), self.config.propagation_dropout, training=self.training)
        logits = self.gamma[0] * h
        for gamma in self.gamma[1:]:
            h = adjacency @ h
            logits = logits + gamma * h
        return logits

    def _start_as_pagerank(self) -> None:
        restart = self.config.restart
        with torch.no_grad():
            self.gamma.copy_((1 - restart) ** torch.arange(len(self.gamma)))
            self.gamma[:-1] *= restart
