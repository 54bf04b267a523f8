"""GCN-SL+, which learns its second graph from whom nodes link to, and keeps the directions of the edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.nn.config import GCNSLPlusConfig
from gcnsl.nn.gated_branches import ComparedRows, GatedBranches
from gcnsl.nn.graph_model import FeatureLinear, declared_by, drop_entries
from gcnsl.nn.preprocessing import graph_adjacency, known_nodes, links_to_known
from gcnsl.nn.reconnect_conv import SimilarityHead
from gcnsl.sparse import Matrix, fastest_form

SHORTEST = 1e-6
"""Rows of a branch that are shorter than this are divided by this instead of by their length."""
MOST_ANCHORS, MOST_OTHERS = 1 << 12, 1 << 14
"""The most rows and columns of similarities in the contrastive term."""


def _sides(config: GCNSLPlusConfig) -> list[Any]:
    """The directions along which a node sees others, each with an Â of its own."""
    return {"auto": ["out"], "both": ["out", "in"]}.get(config.direction, [config.direction])


def _heads(number: int, in_channels: int, config: GCNSLPlusConfig) -> nn.ModuleList:
    options: dict[str, Any] = {"mean_degree": config.mean_degree, "epsilon": config.epsilon}
    return nn.ModuleList(SimilarityHead(in_channels, config.similarity_channels, **options) for _ in range(number))


def contrastive_loss(z: Tensor, y: Tensor, *, classes: int, temperature: float) -> Tensor:
    r"""How far each row is from the other rows of its class, compared with all other rows (Khosla et al., 2020).

    .. math::
        L = -\,\mathrm{mean}_i \log \frac{\sum_{j \ne i,\, y_j = y_i} \exp(z_i \cdot z_j / \tau)}
            {\sum_{j \ne i} \exp(z_i \cdot z_j / \tau)}

    z (m × q) are unit rows of labelled nodes, y (m) their classes, and τ is the temperature. Rows whose class has no
    other row are left out of the mean. Of more than 4,096 rows i or 16,384 rows j, as many are drawn at random.
    """
    anchors, others = _some(z, MOST_ANCHORS), _some(z, MOST_OTHERS)
    # (s - 1) / τ instead of s / τ, which cancels in the quotient, so that no term of the sums exceeds 1
    exponents = torch.addmm(z.new_full((1,), -1 / temperature), z[anchors] / temperature, z[others].T)
    place = torch.full((len(z),), -1, device=z.device)  # i = j is left out without waiting for a GPU
    place[others] = torch.arange(len(others), device=z.device)
    column = place[anchors][:, None]
    itself = exponents.new_zeros(column.shape).masked_fill(column >= 0, -torch.inf)
    exponents.scatter_add_(1, column.clamp(min=0), itself)
    by_class = exponents.exp() @ functional.one_hot(y[others], classes).to(z.dtype)
    alike = by_class.gather(1, y[anchors][:, None])[:, 0]
    counted = alike > 0
    distance = torch.where(counted, by_class.sum(dim=1), 1.0).log() - torch.where(counted, alike, 1.0).log()
    return distance.sum() / counted.sum().clamp(min=1)


def _some(z: Tensor, most: int) -> Tensor:
    n = len(z)
    return torch.arange(n, device=z.device) if n <= most else torch.randperm(n, device=z.device)[:most]


@declared_by(GCNSLPlusConfig)
class GCNSLPlus(GatedBranches):
    r"""Graph convolution on a given graph and on learned ones, each of which joins nodes that are alike in some way.

    .. math::
        H &= \mathrm{ReLU}(X W_X), \qquad H^{(k)} = \hat A H^{(k-1)}, \quad H^{(0)} = H \\
        H_h &= \hat A_h H, \qquad
            (A_h)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon_h,\ i \ne j], \quad s_{ij} = \cos(r_i Q_h, r_j Q_h) \\
        H^{cb} &= H \,\|\, H^{(1)} \,\|\, \dots \,\|\, H^{(K)} \,\|\, H_1 \,\|\, H_2 \,\|\, \dots
            \,\|\, \mathrm{ReLU}(A W_A) \\
        Z &= \mathrm{softmax}\big(\mathrm{ReLU}(w \odot H^{cb})\, W\big)

    A head h of the learned graph (:class:`SimilarityHead`) compares whom two nodes link to,
    r_i = row i of A, or their features, r_i = row i of X. In directed graphs A has the arcs of one direction, or of
    both side by side; then there is also an H^(k) for each direction. In training, a contrastive term for the
    similarities of each head is added to the loss (:meth:`extra_loss`). Compared with :class:`gcnsl.nn.GCNSL`, links
    take the place of the spectral features, A* has no loops, and ε follows from a mean degree.

    Shapes:
        x (n × d), links A (n × n, or n × 2n for both directions), dense or sparse; an Â (n × n) per direction → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, num_nodes: int, **options: Any
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config, sides = self.config, _sides(self.config)
        self.columns = len(sides) * num_nodes
        self.lin_x = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.neighbours_heads = _heads(config.neighbours_heads, self.columns, config)
        self.features_heads = _heads(config.features_heads, in_channels, config)
        self.lin_links = FeatureLinear(self.columns, hidden_channels, bias=False) if config.structure_branch else None
        ways = [""] if len(sides) == 1 else [" out", " in"]
        steps = [f"A{way} ({k} step{'s' if k > 1 else ''})" for way in ways for k in range(1, config.rounds + 1)]
        heads = [name for name, _, _ in self._heads()]
        self.branch_names = ["own features", *steps, *heads, *(["links"] if config.structure_branch else [])]
        self.learns_graph = len(heads) > 0
        self.gate = nn.Parameter(torch.ones(len(self.branch_names) * hidden_channels))
        self.lin_out = FeatureLinear(len(self.gate), out_channels, bias=False)

    @classmethod
    def matrices(cls, config: GCNSLPlusConfig, graph: Data) -> tuple[Matrix, ...]:
        """A, the links to known nodes, and Â for every direction along which a node sees others."""
        sides, known = _sides(config), known_nodes(graph)
        options: dict[str, Any] = {"self_loops": config.self_loops, "norm": config.adjacency_norm, "known": known}
        links = fastest_form(links_to_known(graph, *sides))
        return links, *(graph_adjacency(graph, direction=side, **options).sharing_places(links) for side in sides)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The parameters for the optimizer: the Q and W_A have a weight decay and a learning rate of their own."""
        of_links = [head.similarity.weight for head in (*self.neighbours_heads, *self.features_heads)]
        of_links += [self.lin_links.weight] if self.lin_links is not None else []
        rest = [weight for weight in self.parameters() if all(weight is not other for other in of_links)]
        groups: list[dict[str, Any]] = [{"params": rest, "weight_decay": weight_decay}]
        if of_links:
            lr = {} if self.config.link_lr is None else {"lr": self.config.link_lr}
            groups.append({"params": of_links, "weight_decay": self.config.link_decay, **lr})
        return groups

    def each_branch(
        self, x: Matrix, links: Matrix, *adjacencies: Matrix, known: int | None = None, compared: Matrix | None = None
    ) -> Iterator[Tensor]:
        """The blocks of H^cb, all of the same shape (n × p); of more than ``known`` nodes, the others are new.

        With ``compared`` (n × d), heads compare these features instead of X.
        """
        h = self.lin_x(drop_entries(x, self.config.input_dropout, training=self.training)).relu()
        yield self._scaled(h)
        for a_hat in adjacencies:
            step = h
            for _ in range(self.config.rounds):
                step = a_hat @ step
                yield self._scaled(step)
        for _, head, rows in self._heads(x if compared is None else compared, links):
            yield self._scaled(head(rows, h, known=known))
        if self.lin_links is not None:
            dropped = drop_entries(links, self.config.link_dropout, training=self.training)
            yield self._scaled(self.lin_links(dropped).relu())

    def _scaled(self, branch: Tensor) -> Tensor:
        """Unit rows, if they are wanted; what rounding leaves of a row of zeros does not become one."""
        return functional.normalize(branch, dim=1, eps=SHORTEST) if self.config.normalize_branches else branch

    def extra_loss(self, x: Matrix, links: Matrix, *_: Any, y: Tensor, nodes: Tensor) -> Tensor:
        """The contrastive term of all heads on the training nodes (m, with classes y (n)), times its weight."""
        if self.config.contrast == 0:
            return self.gate.new_zeros(())
        options: dict[str, Any] = {"classes": self.lin_out.out_features, "temperature": self.config.temperature}
        directions = (head.directions(rows)[nodes] for _, head, rows in self._heads(x, links))
        terms = (contrastive_loss(z, y[nodes], **options) for z in directions)
        total: Tensor = self.config.contrast * sum(terms, self.gate.new_zeros(()))
        return total

    @torch.no_grad()
    def learned_graph(self, x: Matrix, links: Matrix, *_: Any, rows: slice | None = None) -> tuple[Tensor, Tensor]:
        """The edges of all heads that begin in some rows: edge_index (2 × E) and similarities (E).

        A pair that several heads join is there several times.
        """
        found = [head.edges(described, rows) for _, head, described in self._heads(x, links)]
        if not found:
            raise InputError("the model has no learned graph: build it with neighbours_heads or features_heads")
        return torch.cat([edges for edges, _ in found], dim=1), torch.cat([similarity for _, similarity in found])

    def comparisons(self, x: Matrix, links: Matrix, *_: Any) -> list[ComparedRows]:
        """What each head of the learned graph compares."""
        measure: Any = {True: "links", False: "features"}
        return [
            ComparedRows(name, measure[rows is links], rows, head.similarity.weight, float(head.epsilon))
            for name, head, rows in self._heads(x, links)
        ]

    def _heads(self, x: Any = None, links: Any = None) -> Iterator[tuple[str, Any, Any]]:
        """The heads: their names, such as "A* by links", themselves, and the rows that each compares."""
        kinds = ("links", self.neighbours_heads, links), ("features", self.features_heads, x)
        for kind, heads, rows in kinds:
            for number, head in enumerate(heads, start=1):
                yield f"A* by {kind}" + (f" {number}" if len(heads) > 1 else ""), head, rows
