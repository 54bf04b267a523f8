"""GPR-GNN (Chien et al., 2021): generalised PageRank with learned weights."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import ModelConfig, Precomputed
from gcnsl.nn.dropout import dropout
from gcnsl.nn.mlp import MLP
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.options import option
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form


@dataclass(frozen=True)
class GPRGNNConfig(ModelConfig):
    """Hyper-parameters of :class:`GPRGNN`."""

    uses: ClassVar[frozenset[str]] = frozenset({"weights"})

    hidden_channels: int = option(64, "Width of the hidden layer.", least=1)
    hops: int = option(10, "Largest power of Â (K).", least=1, most=64)
    restart: float = option(0.1, "Probability of a restart (α) in the PageRank that γ starts from.", least=0, most=1)
    dropout: float = option(0.5, "Dropout before each linear map.", least=0, below=1)
    propagation_dropout: float = option(0.5, "Dropout before the powers of Â.", least=0, below=1)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X and Â with loops, and with the weights of the edges if they have some."""
        return fastest_form(graph.x), graph_adjacency(graph, self_loops=True, norm="symmetric")

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "GPRGNN":
        """The model for this number of features and classes."""
        return self.make(GPRGNN, in_channels=in_channels, out_channels=out_channels)


class GPRGNN(nn.Module):
    r"""A perceptron with two layers, and a weighted sum of what the powers of Â make of its output.

    .. math::
        Z = \mathrm{softmax}\Big(\sum_{k=0}^{K} \gamma_k \hat A^k\, \mathrm{MLP}(X)\Big)

    The weights γ are learned and may be negative. They start as those of personalised PageRank,
    γ_k = α (1 - α)^k for k < K and γ_K = (1 - α)^K, and have no weight decay. The forward pass returns the logits, Z
    before the softmax.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the perceptron's hidden layer.
        out_channels: Number of classes (C).
        hops: Largest power of Â (K).
        restart: Probability of a restart in the PageRank that γ starts from (α).
        dropout: Dropout before each linear map.
        propagation_dropout: Dropout before the powers of Â.

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n) → n × C.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        hops: int = 10,
        restart: float = 0.1,
        dropout: float = 0.5,
        propagation_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        GPRGNNConfig.check(hops=hops, restart=restart, propagation_dropout=propagation_dropout)
        self.restart, self.propagation_dropout = restart, propagation_dropout
        self.mlp = MLP(in_channels, hidden_channels, out_channels, dropout=dropout)
        self.gamma = nn.Parameter(torch.empty(hops + 1))
        self._start_as_pagerank()

    def reset_parameters(self) -> None:
        """Draw new weights; γ starts as PageRank."""
        self.mlp.reset_parameters()
        self._start_as_pagerank()

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The parameters for the optimizer; γ has no weight decay."""
        return [
            {"params": list(self.mlp.parameters()), "weight_decay": weight_decay},
            {"params": [self.gamma], "weight_decay": 0.0},
        ]

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Logits of every node (n × C)."""
        h = dropout(self.mlp(x), self.propagation_dropout, training=self.training)
        logits = self.gamma[0] * h
        for gamma in self.gamma[1:]:
            h = adjacency @ h
            logits = logits + gamma * h
        return logits

    def _start_as_pagerank(self) -> None:
        with torch.no_grad():
            self.gamma.copy_((1 - self.restart) ** torch.arange(len(self.gamma)))
            self.gamma[:-1] *= self.restart
