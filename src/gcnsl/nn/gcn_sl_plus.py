"""GCN-SL+, which learns its second graph from whom nodes link to, and keeps the directions of the edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gcnsl.errors import InputError
from gcnsl.nn.compared_rows import ComparedRows
from gcnsl.nn.config import AdjacencyNorm, Direction, Directions, GCNSLPlusConfig
from gcnsl.nn.contrast import contrastive_loss
from gcnsl.nn.dropout import drop_entries
from gcnsl.nn.gated_branches import gated, gated_logits
from gcnsl.nn.graph_model import FeatureLinear, GraphModel, declared_by
from gcnsl.nn.preprocessing import (
    graph_adjacency,
    known_nodes,
    links_to_known,
)
from gcnsl.nn.similarity_head import SimilarityHead
from gcnsl.sparse import Matrix, fastest_form

SHORTEST = 1e-6
"""Rows of a branch that are shorter than this are divided by this instead of by their length."""


def matrices_of(
    graph: Data, direction: Directions, *, self_loops: bool, adjacency_norm: AdjacencyNorm
) -> tuple[Matrix, ...]:
    """A, the links to known nodes, and Â for every direction along which a node sees others."""
    sides: list[Direction] = ["out", "in"] if direction == "both" else ["out" if direction == "auto" else direction]
    known = known_nodes(graph) if known_nodes(graph) < graph.num_nodes else None
    links = fastest_form(links_to_known(graph, *sides))
    adjacencies = (
        graph_adjacency(graph, self_loops=self_loops, norm=adjacency_norm, direction=side, known=known)
        for side in sides
    )
    return links, *(matrix.sharing_places(links) for matrix in adjacencies)


@declared_by(GCNSLPlusConfig)
class GCNSLPlus(GraphModel):
    r"""Graph convolution on a given graph and on learned ones, each of which joins nodes that are alike in some way.

    .. math::
        H &= \mathrm{ReLU}(X W_X), \qquad H^{(k)} = \hat A H^{(k-1)}, \quad H^{(0)} = H \\
        H_h &= \hat A_h H, \qquad
            (A_h)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon_h,\ i \ne j], \quad s_{ij} = \cos(r_i Q_h, r_j Q_h) \\
        H^{cb} &= H \,\|\, H^{(1)} \,\|\, \dots \,\|\, H^{(K)} \,\|\, H_1 \,\|\, H_2 \,\|\, \dots
            \,\|\, \mathrm{ReLU}(A W_A) \\
        Z &= \mathrm{softmax}\big(\mathrm{ReLU}(w \odot H^{cb})\, W\big)

    A head h of the learned graph (:class:`gcnsl.nn.similarity_head.SimilarityHead`) compares whom two nodes link to,
    r_i = row i of A, or their features, r_i = row i of X. In directed graphs A has the arcs of one direction, or of
    both side by side; then there is also an H^(k) for each direction. The forward pass returns the logits, Z before the
    softmax. In training, a contrastive term for the similarities of each head is added to the loss
    (:meth:`extra_loss`).

    Compared with :class:`gcnsl.nn.GCNSL`, the links take the place of the spectral features, A* has no loops, and ε
    follows from a mean degree.

    Shapes:
        x (n × d), links A (n × n, or n × 2n for both directions), each dense or sparse; one Â (n × n) per direction
        → n × C. An edge_index (2 × E, from source to target) may take the place of A and Â, which are then made from it
        at every call; ``GCNSLPlusConfig.inputs`` makes them once.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_nodes: int,
        *,
        hidden_channels: int = GCNSLPlusConfig.hidden_channels,
        direction: Directions = GCNSLPlusConfig.direction,
        rounds: int = GCNSLPlusConfig.rounds,
        neighbours_heads: int = GCNSLPlusConfig.neighbours_heads,
        features_heads: int = GCNSLPlusConfig.features_heads,
        similarity_channels: int = GCNSLPlusConfig.similarity_channels,
        mean_degree: float | None = GCNSLPlusConfig.mean_degree,
        epsilon: float = GCNSLPlusConfig.epsilon,
        contrast: float = GCNSLPlusConfig.contrast,
        temperature: float = GCNSLPlusConfig.temperature,
        structure_branch: bool = GCNSLPlusConfig.structure_branch,
        dropout: float = GCNSLPlusConfig.dropout,
        input_dropout: float = GCNSLPlusConfig.input_dropout,
        link_dropout: float = GCNSLPlusConfig.link_dropout,
        normalize_branches: bool = GCNSLPlusConfig.normalize_branches,
        link_decay: float = GCNSLPlusConfig.link_decay,
        link_lr: float | None = GCNSLPlusConfig.link_lr,
        self_loops: bool = GCNSLPlusConfig.self_loops,
        adjacency_norm: AdjacencyNorm = GCNSLPlusConfig.adjacency_norm,
    ) -> None:
        super().__init__()
        self.rounds, self.direction, self.sides = rounds, direction, 2 if direction == "both" else 1
        self.self_loops, self.adjacency_norm = self_loops, adjacency_norm
        self.contrast, self.temperature = contrast, temperature
        self.dropout, self.input_dropout, self.link_dropout = dropout, input_dropout, link_dropout
        self.normalize_branches, self.link_decay, self.link_lr = normalize_branches, link_decay, link_lr

        def heads(number: int, columns: int) -> nn.ModuleList:
            return nn.ModuleList(
                SimilarityHead(columns, similarity_channels, mean_degree=mean_degree, epsilon=epsilon)
                for _ in range(number)
            )

        columns = self.sides * num_nodes
        self.lin_x = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.neighbours_heads = heads(neighbours_heads, columns)
        self.features_heads = heads(features_heads, in_channels)
        self.lin_links = FeatureLinear(columns, hidden_channels, bias=False) if structure_branch else None
        self.gate = nn.Parameter(torch.ones(len(self.branch_names) * hidden_channels))
        self.lin_out = FeatureLinear(len(self.gate), out_channels, bias=False)

    def reset_parameters(self) -> None:
        """Draw new weights (Glorot's uniform distribution); the gate starts at 1."""
        for part in (self.lin_x, *self.neighbours_heads, *self.features_heads, self.lin_links, self.lin_out):
            if part is not None:
                part.reset_parameters()
        nn.init.ones_(self.gate)

    @classmethod
    def inputs(cls, config: GCNSLPlusConfig, graph: Data, **_: Any) -> tuple[Matrix, ...]:
        """X, A (the links to known nodes) and Â, with the weights of the edges; with both directions two Â."""
        matrices = matrices_of(
            graph, config.direction, self_loops=config.self_loops, adjacency_norm=config.adjacency_norm
        )
        return fastest_form(graph.x), *matrices

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The parameters for the optimizer: the Q and W_A have a weight decay and a learning rate of their own."""
        owners = [*self.neighbours_heads, *self.features_heads, *([self.lin_links] if self.lin_links else [])]
        of_links = [weight for owner in owners for weight in owner.parameters()]
        rest = [weight for weight in self.parameters() if all(weight is not other for other in of_links)]
        groups = [{"params": rest, "weight_decay": weight_decay}]
        if of_links:
            lr = {} if self.link_lr is None else {"lr": self.link_lr}
            groups.append({"params": of_links, "weight_decay": self.link_decay, **lr})
        return groups

    @property
    def node_layers(self) -> list[nn.Linear]:
        """The layers with a weight for every node."""
        layers: list[Any] = [head.similarity for head in self.neighbours_heads]
        return layers if self.lin_links is None else [*layers, self.lin_links]

    def forward(self, x: Matrix, links: Matrix, *adjacencies: Matrix, known: int | None = None) -> Tensor:
        """Logits of every node (n × C); of more than ``known`` nodes, the others are new."""
        branches = self._each_branch(x, links, *adjacencies, known=known)
        return gated_logits(branches, self.gate, self.lin_out.weight, rate=self.dropout, training=self.training)

    @property
    def branch_names(self) -> list[str]:
        """The names of the branches of H^cb, in order."""
        ways = [""] if self.sides == 1 else [" out", " in"]
        steps = [f"A{way} ({k} step{'s' if k > 1 else ''})" for way in ways for k in range(1, self.rounds + 1)]
        heads = [name for name, _ in self._named_heads()]
        return ["own features", *steps, *heads, *(["links"] if self.lin_links is not None else [])]

    def branches(self, x: Matrix, links: Matrix, *adjacencies: Matrix, known: int | None = None) -> list[Tensor]:
        """The blocks of H^cb, all of the same shape (n × p)."""
        return list(self._each_branch(x, links, *adjacencies, known=known))

    def _each_branch(
        self, x: Matrix, links: Matrix, *adjacencies: Matrix, known: int | None = None
    ) -> Iterator[Tensor]:
        """The same, each made when it is asked for, so that a large graph needs less memory."""
        made = self._unscaled_branches(x, links, *adjacencies, known=known)
        if not self.normalize_branches:
            return made
        # What rounding leaves of a row of zeros must not become a row of length 1.
        return (functional.normalize(branch, dim=1, eps=SHORTEST) for branch in made)

    def _unscaled_branches(
        self, x: Matrix, links: Matrix, *adjacencies: Matrix, known: int | None = None
    ) -> Iterator[Tensor]:
        links, *given = self._matrices(x, links, adjacencies)
        self._check(x, links, given)
        h = self.lin_x(drop_entries(x, self.input_dropout, training=self.training)).relu()
        yield h
        for a_hat in given:
            step = h
            for _ in range(self.rounds):
                step = a_hat @ step
                yield step
        for head, rows in self._described_heads(x, links):
            yield head(rows, h, known=known)
        if self.lin_links is not None:
            yield self.lin_links(drop_entries(links, self.link_dropout, training=self.training)).relu()

    def extra_loss(self, x: Matrix, links: Matrix, *adjacencies: Matrix, y: Tensor, nodes: Tensor) -> Tensor:
        """The contrastive term of all heads on the training nodes (m, with classes y (n)), times its weight."""
        if self.contrast == 0:
            return self.gate.new_zeros(())
        links, *_ = self._matrices(x, links, adjacencies)
        terms = (
            contrastive_loss(
                head.directions(rows)[nodes],
                y[nodes],
                classes=self.lin_out.out_features,
                temperature=self.temperature,
            )
            for head, rows in self._described_heads(x, links)
        )
        return self.contrast * sum(terms, self.gate.new_zeros(()))

    @property
    def learns_graph(self) -> bool:
        """Whether the model has a learned graph A*."""
        return len(self.neighbours_heads) + len(self.features_heads) > 0

    @torch.no_grad()
    def learned_graph(
        self, x: Matrix, links: Matrix, *adjacencies: Matrix, rows: slice | None = None
    ) -> tuple[Tensor, Tensor]:
        """The edges of all heads that begin in some rows: edge_index (2 × E) and similarities (E).

        A pair that several heads join is there several times.
        """
        links, *_ = self._matrices(x, links, adjacencies)
        found = [head.edges(described, rows) for head, described in self._described_heads(x, links)]
        if not found:
            raise InputError("the model has no learned graph: build it with neighbours_heads or features_heads")
        return torch.cat([edges for edges, _ in found], dim=1), torch.cat([similarity for _, similarity in found])

    def comparisons(self, x: Matrix, links: Matrix, *adjacencies: Matrix) -> list[ComparedRows]:
        """What each head of the learned graph compares."""
        links, *_ = self._matrices(x, links, adjacencies)
        described = zip(self._named_heads(), self._described_heads(x, links), strict=True)
        return [
            ComparedRows(
                name, "links" if rows is links else "features", rows, head.similarity.weight, float(head.epsilon)
            )
            for (name, head), (_, rows) in described
        ]

    @torch.no_grad()
    def evidence(
        self, x: Matrix, links: Matrix, *adjacencies: Matrix, node: int, one: int, other: int
    ) -> dict[str, float]:
        """What each branch adds to the logit of class ``one`` minus that of class ``other``, at one node."""
        was_training = self.training
        self.eval()
        rows = [branch[[node]] for branch in self.branches(x, links, *adjacencies)]
        parts = gated(rows, self.gate)[0] * (self.lin_out.weight[one] - self.lin_out.weight[other])
        self.train(was_training)
        return dict(zip(self.branch_names, parts.view(len(rows), -1).sum(dim=1).tolist(), strict=True))

    def _named_heads(self) -> Iterator[tuple[str, SimilarityHead]]:
        """The heads by name, such as "A* by links" or, if there are several, "A* by links 2"."""
        for kind, heads in (("links", self.neighbours_heads), ("features", self.features_heads)):
            for number, head in enumerate(heads, start=1):
                yield f"A* by {kind}" + (f" {number}" if len(heads) > 1 else ""), head  # type: ignore[misc]

    def _described_heads(self, x: Matrix, links: Matrix) -> Iterator[tuple[SimilarityHead, Matrix]]:
        """The heads, each with the rows that it compares."""
        for heads, rows in ((self.neighbours_heads, links), (self.features_heads, x)):
            for head in heads:
                yield head, rows  # type: ignore[misc]

    def _matrices(self, x: Matrix, links: Matrix, adjacencies: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
        """A and every Â, given or made from edge_index."""
        if not isinstance(links, Tensor) or links.is_floating_point():
            return links, *adjacencies
        arcs = links.cpu()
        graph = Data(edge_index=to_undirected(arcs, num_nodes=len(x)), arc_index=arcs, num_nodes=len(x))
        made = matrices_of(graph, self.direction, self_loops=self.self_loops, adjacency_norm=self.adjacency_norm)
        return tuple(matrix.to(links.device) for matrix in made)

    def _check(self, x: Matrix, links: Matrix, adjacencies: Sequence[Matrix]) -> None:
        n, wanted = x.shape[0], self.lin_x.in_features
        if x.shape[1] != wanted:
            raise InputError(f"x has {x.shape[1]} columns, but the model was built for in_channels={wanted}")
        for layer in self.node_layers:
            if links.shape != (n, layer.in_features):
                raise InputError(f"links has shape {tuple(links.shape)}: give A ({n} × {layer.in_features})")
        if len(adjacencies) != self.sides:
            raise InputError(f"there are {len(adjacencies)} matrices Â: give one for each direction ({self.sides})")
