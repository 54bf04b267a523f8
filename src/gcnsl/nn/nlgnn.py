"""NLGNN (Liu et al., 2020), a convolution over the nodes sorted by a learned score."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gcnsl.nn.config import NLGNNConfig
from gcnsl.nn.gcn import GCN
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by, dropout
from gcnsl.nn.mlp import MLP
from gcnsl.nn.preprocessing import normalized_adjacency
from gcnsl.sparse import Matrix, SparseMatrix


@declared_by(NLGNNConfig)
class NLGNN(GraphModel):
    r"""Embed the nodes, sort them by a score, convolve them in that order, and classify by both results.

    .. math::
        B &= \mathrm{embedding}(X, A) \in \mathbb R^{n \times C}, \qquad s = B u + b_u \\
        V &= \mathrm{Conv}_2\big(\mathrm{ReLU}(\mathrm{Conv}_1(\mathrm{diag}(s)\,B \text{ in the order of } s))\big)
            \text{ in the order of the nodes} \\
        Z &= \mathrm{softmax}\big((B \,\|\, V)\, W + b\big)

    The convolution's input is multiplied by the score, so that gradients reach the score. The learned graph joins nodes
    that are at most half a kernel apart in the order of s.

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n), for ``"gcn"`` → n × C.
    """

    learns_graph = True

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config = self.config
        self.reads_edges = config.embedding == "gcn"
        size = config.kernel_size
        embed: Callable[..., nn.Module] = MLP if config.embedding == "mlp" else partial(GCN, drop_features=False)
        self.embedding = embed(in_channels, hidden_channels, out_channels, dropout=config.dropout)
        self.score = FeatureLinear(out_channels, 1)
        self.convs = nn.ModuleList(nn.Conv1d(out_channels, out_channels, size, padding="same") for _ in range(2))
        self.lin_out = FeatureLinear(2 * out_channels, out_channels)

    @classmethod
    def matrices(cls, config: NLGNNConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â if the embedding is a GCN."""
        return () if config.embedding == "mlp" else (normalized_adjacency(graph.edge_index, graph.num_nodes),)

    def logits(self, x: Matrix, adjacency: SparseMatrix | None = None) -> Tensor:
        """Logits of every node (n × C)."""
        embedded, score, order = self._embed(x, adjacency)
        first, second = self.convs
        line = (score * embedded)[order].T.unsqueeze(0)  # n × C → 1 × C × n
        line = dropout(first(line).relu(), self.config.conv_dropout, training=self.training)
        distant = second(line).squeeze(0).T[torch.argsort(order)]
        return self.lin_out(torch.cat([embedded, distant], dim=1))

    @torch.no_grad()
    def learned_graph(
        self, x: Matrix, adjacency: SparseMatrix | None = None, *, rows: slice | None = None
    ) -> tuple[Tensor, Tensor]:
        """The learned graph, or some rows of it: each node is joined to all nodes of its window, with weight 1.

        Returns:
            edge_index (2 × E) and weight (E).
        """
        _, score, order = self._embed(x, adjacency)
        reach = self.config.kernel_size // 2
        place = torch.argsort(order)[rows or slice(None)]
        source, step = torch.meshgrid(place, torch.arange(-reach, reach + 1, device=order.device), indexing="ij")
        target = source + step
        inside = (target >= 0) & (target < len(order))
        edges = torch.stack([order[source[inside]], order[target[inside]]])
        return edges, torch.ones_like(edges[0], dtype=score.dtype)

    def _embed(self, x: Matrix, adjacency: SparseMatrix | None) -> tuple[Tensor, Tensor, Tensor]:
        """B (n × C), s (n × 1), and the nodes in the order of s (n)."""
        embedded = self.embedding(x) if adjacency is None else self.embedding(x, adjacency)
        score = self.score(embedded)
        return embedded, score, torch.argsort(score.squeeze(1), stable=True)
