"""NLGNN (Liu et al., 2020): a convolution over the nodes, sorted by a learned score."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.errors import InputError
from gcnsl.nn.checks import check_at_least, check_choice, check_dropout
from gcnsl.nn.config import Input
from gcnsl.nn.dropout import dropout
from gcnsl.nn.gcn import GCN
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.mlp import MLP
from gcnsl.nn.preprocessing import FeatureNorm, feature_matrix, normalize_features, normalized_adjacency
from gcnsl.nn.sparse import SparseMatrix

Embedding = Literal["mlp", "gcn"]


@dataclass(frozen=True)
class NLGNNConfig:
    """Hyper-parameters of :class:`NLGNN`."""

    hidden_channels: int = 64
    embedding: Embedding = "mlp"
    kernel_size: int = 5
    dropout: float = 0.5
    feature_norm: FeatureNorm = "row"

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """X, and Â where the embedding is a GCN."""
        x = feature_matrix(normalize_features(data.x, self.feature_norm))
        return (x,) if self.embedding == "mlp" else (x, normalized_adjacency(data.edge_index, data.num_nodes))

    def build(self, data: Data) -> "NLGNN":
        """The model, its weights drawn from torch's generator."""
        return NLGNN(
            data.num_features,
            self.hidden_channels,
            len(data.class_names),
            embedding=self.embedding,
            kernel_size=self.kernel_size,
            dropout=self.dropout,
        )


class NLGNN(nn.Module):
    r"""Embed, sort by a score, convolve along that order, classify both.

    .. math::
        B &= \mathrm{embedding}(X, A) \in \mathbb R^{n \times C}, \qquad s = B u + b_u \\
        V &= \mathrm{Conv}_2\big(\mathrm{ReLU}(\mathrm{Conv}_1(\mathrm{diag}(s)\,B \text{ in the order of } s))\big)
            \text{ in the order of the nodes} \\
        Z &= \mathrm{softmax}\big((B \,\|\, V)\, W + b\big)

    The score multiplies what is convolved, so that gradients reach it. Nodes next to each other in the order of s, at
    most half a kernel apart, are the graph that the model has learned. The forward pass returns the logits, Z before
    the softmax.

    Args:
        in_channels: Features of a node (d).
        hidden_channels: Width of the embedding's hidden layer.
        out_channels: Classes (C).
        embedding: ``"mlp"`` or ``"gcn"``, either of two layers.
        kernel_size: Nodes that a convolution sees at once, odd.
        dropout: Inside the embedding and between the convolutions.

    Shapes:
        x (n × d), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; adjacency Â (n × n), for ``"gcn"`` → n × C.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        embedding: Embedding = "mlp",
        kernel_size: int = 5,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_at_least(1, kernel_size=kernel_size)
        check_choice(get_args(Embedding), embedding=embedding)
        check_dropout(dropout=dropout)
        if kernel_size % 2 == 0:
            raise InputError(f"kernel_size({kernel_size}) must be odd: a node stands in the middle of its window")
        self.kernel_size, self.dropout = kernel_size, dropout
        kind = MLP if embedding == "mlp" else GCN
        self.embedding = kind(in_channels, hidden_channels, out_channels, dropout=dropout)
        self.score = FeatureLinear(out_channels, 1)
        self.convs = nn.ModuleList(nn.Conv1d(out_channels, out_channels, kernel_size, padding="same") for _ in "12")
        self.lin_out = FeatureLinear(2 * out_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for part in (self.embedding, self.score, self.convs, self.lin_out):
            reset(part)

    def forward(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix | None = None) -> Tensor:
        """Logits of every node (n × C)."""
        embedded, score = self._embed(x, adjacency)
        order = torch.argsort(score.squeeze(1), stable=True)
        first, second = self.convs
        line = (score * embedded)[order].T.unsqueeze(0)  # n × C → 1 × C × n
        line = dropout(first(line).relu(), self.dropout, training=self.training)
        distant = second(line).squeeze(0).T[torch.argsort(order)]
        logits: Tensor = self.lin_out(torch.cat([embedded, distant], dim=1))
        return logits

    @torch.no_grad()
    def reconnected_graph(
        self, x: Tensor | SparseMatrix, adjacency: SparseMatrix | None = None
    ) -> tuple[Tensor, Tensor]:
        """The learned graph: each node with itself and those in one window; edge_index (2 × E) and weights 1 (E)."""
        _, score = self._embed(x, adjacency)
        order = torch.argsort(score.squeeze(1), stable=True)
        reach = self.kernel_size // 2
        place = torch.arange(len(order), device=order.device)
        source, step = torch.meshgrid(place, torch.arange(-reach, reach + 1, device=order.device), indexing="ij")
        target = source + step
        inside = (target >= 0) & (target < len(order))
        edges = torch.stack([order[source[inside]], order[target[inside]]])
        return edges, torch.ones_like(edges[0], dtype=score.dtype)

    def _embed(self, x: Tensor | SparseMatrix, adjacency: SparseMatrix | None) -> tuple[Tensor, Tensor]:
        """B (n × C) and s (n × 1)."""
        if isinstance(self.embedding, MLP):
            embedded = self.embedding(x)
        elif adjacency is None:
            raise InputError("adjacency is None: give Â, or build the model with embedding='mlp'")
        else:
            embedded = self.embedding(x, adjacency)
        return embedded, self.score(embedded)
