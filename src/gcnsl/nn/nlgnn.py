"""NLGNN (Liu et al., 2020), a convolution over the nodes sorted by a learned score."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from gcnsl.errors import ArgumentError, InputError
from gcnsl.nn.config import ModelConfig, Precomputed, check_channels
from gcnsl.nn.dropout import dropout
from gcnsl.nn.gcn import GCN
from gcnsl.nn.linear import FeatureLinear
from gcnsl.nn.mlp import MLP
from gcnsl.nn.preprocessing import normalized_adjacency
from gcnsl.options import option
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form

Embedding = Literal["mlp", "gcn"]


@dataclass(frozen=True)
class NLGNNConfig(ModelConfig):
    """Hyper-parameters of :class:`NLGNN`."""

    hidden_channels: int = option(48, "Width of the embedding's hidden layer.", least=1)
    embedding: Embedding = option("mlp", "The network that embeds the nodes.")
    kernel_size: int = option(5, "Number of nodes in the window of a convolution; odd.", least=1)
    dropout: float = option(0.5, "Dropout before the embedding's layers; a GCN reads all of X.", least=0, below=1)
    conv_dropout: float = option(0.5, "Dropout between the convolutions.", least=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel_size % 2 == 0:
            raise ArgumentError(
                "kernel_size", self.kernel_size, "must be odd: each node is in the middle of its window"
            )

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X, and Â if the embedding is a GCN."""
        x = fastest_form(graph.x)
        return (x,) if self.embedding == "mlp" else (x, normalized_adjacency(graph.edge_index, graph.num_nodes))

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> "NLGNN":
        """The model for this number of features and classes."""
        return self.make(NLGNN, in_channels=in_channels, out_channels=out_channels)


class NLGNN(nn.Module):
    r"""Embed the nodes, sort them by a score, convolve them in that order, and classify by both results.

    .. math::
        B &= \mathrm{embedding}(X, A) \in \mathbb R^{n \times C}, \qquad s = B u + b_u \\
        V &= \mathrm{Conv}_2\big(\mathrm{ReLU}(\mathrm{Conv}_1(\mathrm{diag}(s)\,B \text{ in the order of } s))\big)
            \text{ in the order of the nodes} \\
        Z &= \mathrm{softmax}\big((B \,\|\, V)\, W + b\big)

    The convolution's input is multiplied by the score, so that gradients reach the score. The learned graph joins nodes
    that are at most half a kernel apart in the order of s. The forward pass returns the logits, Z before the softmax.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the embedding's hidden layer.
        out_channels: Number of classes (C).
        embedding: ``"mlp"`` or ``"gcn"``, each with two layers.
        kernel_size: Number of nodes in the window of a convolution; odd.
        dropout: Dropout before each layer of an MLP, or before the second layer of a GCN, as in the authors' code.
        conv_dropout: Dropout between the convolutions.

    Shapes:
        x (n × d), dense or sparse; adjacency Â (n × n), for ``"gcn"`` → n × C.
    """

    learns_graph = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        embedding: Embedding = "mlp",
        kernel_size: int = 5,
        dropout: float = 0.5,
        conv_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_channels(in_channels=in_channels, out_channels=out_channels)
        NLGNNConfig.check(hidden_channels=hidden_channels, embedding=embedding)
        NLGNNConfig.check(kernel_size=kernel_size, dropout=dropout, conv_dropout=conv_dropout)
        self.kernel_size, self.conv_dropout = kernel_size, conv_dropout
        embed: Callable[..., nn.Module] = MLP if embedding == "mlp" else partial(GCN, drop_features=False)
        self.embedding = embed(in_channels, hidden_channels, out_channels, dropout=dropout)
        self.score = FeatureLinear(out_channels, 1)
        self.convs = nn.ModuleList(nn.Conv1d(out_channels, out_channels, kernel_size, padding="same") for _ in range(2))
        self.lin_out = FeatureLinear(2 * out_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for part in (self.embedding, self.score, self.convs, self.lin_out):
            reset(part)

    def forward(self, x: Matrix, adjacency: SparseMatrix | None = None) -> Tensor:
        """Logits of every node (n × C)."""
        embedded, score, order = self._embed(x, adjacency)
        first, second = self.convs
        line = (score * embedded)[order].T.unsqueeze(0)  # n × C → 1 × C × n
        line = dropout(first(line).relu(), self.conv_dropout, training=self.training)
        distant = second(line).squeeze(0).T[torch.argsort(order)]
        logits: Tensor = self.lin_out(torch.cat([embedded, distant], dim=1))
        return logits

    @torch.no_grad()
    def learned_graph(
        self, x: Matrix, adjacency: SparseMatrix | None = None, *, rows: slice | None = None
    ) -> tuple[Tensor, Tensor]:
        """The learned graph, or some rows of it: each node is joined to all nodes of its window, with weight 1.

        Returns:
            edge_index (2 × E) and weight (E).
        """
        _, score, order = self._embed(x, adjacency)
        reach = self.kernel_size // 2
        place = torch.argsort(order)[rows or slice(None)]
        source, step = torch.meshgrid(place, torch.arange(-reach, reach + 1, device=order.device), indexing="ij")
        target = source + step
        inside = (target >= 0) & (target < len(order))
        edges = torch.stack([order[source[inside]], order[target[inside]]])
        return edges, torch.ones_like(edges[0], dtype=score.dtype)

    def _embed(self, x: Matrix, adjacency: SparseMatrix | None) -> tuple[Tensor, Tensor, Tensor]:
        """B (n × C), s (n × 1), and the nodes in the order of s (n)."""
        if isinstance(self.embedding, MLP):
            embedded = self.embedding(x)
        elif adjacency is None:
            raise InputError("adjacency is None: give Â, or build the model with embedding='mlp'")
        else:
            embedded = self.embedding(x, adjacency)
        score = self.score(embedded)
        return embedded, score, torch.argsort(score.squeeze(1), stable=True)
