"""GCN-SL (section 3.3 and algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gcnsl.checks import check_whole
from gcnsl.errors import InputError
from gcnsl.nn.config import Folder, GCNSLConfig
from gcnsl.nn.gated_branches import ComparedRows, GatedBranches, edges_of_rows, unit_rows
from gcnsl.nn.graph_model import FeatureLinear, declared_by, drop_entries, dropout
from gcnsl.nn.preprocessing import graph_adjacency, shift_features
from gcnsl.reconnection import PairMemory, reconnect, reconnected_edges
from gcnsl.reconnection.in_groups import reconnect_at_any_size
from gcnsl.sparse import Matrix, fastest_form, take_rows
from gcnsl.spectral import SpectralFeatures

_NEW_ROWS = 1024
"""Number of new nodes that are compared with the known ones at a time; limits the memory for their edges."""


@dataclass(frozen=True)
class SpectralColumns:
    """The spectral features F of the nodes (n × c), and the transformer that computes those of new nodes."""

    values: Tensor
    transformer: SpectralFeatures

    def grown(self, graph: Data) -> SpectralColumns:
        """F of the known nodes, unchanged, followed by F of the new nodes."""
        known, n = len(self.values), graph.num_nodes
        new = [self.transformer.transform(take_rows(graph.x, slice(known, n)))] if n > known else []
        return replace(self, values=torch.cat([self.values, *new]))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The state of the transformer, and F."""
        plain, tensors = self.transformer.state()
        return plain, {"values": self.values, **tensors}


@declared_by(GCNSLConfig)
class GCNSL(GatedBranches):
    r"""Graph convolution on two graphs, the given one and a learned one.

    .. math::
        H &= \mathrm{ReLU}(X W^0_X \,\|\, F W^0_F)
            \quad\text{or}\quad \mathrm{ReLU}\big(\tfrac12 (X W^0_X + F W^0_F)\big) \\
        H_{A_*} &= \hat A_* H, \qquad
            s_{ij} = \cos(x_i Q, x_j Q), \quad (A_*)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon] \\
        H^{(k)}_A &= \hat A H^{(k-1)}_A, \quad H^{(0)}_A = H \\
        H^{cb} &= H \,\|\, H^{(K-1)}_A \,\|\, H^{(K)}_A \,\|\, H_{A_*} \\
        Z &= \mathrm{softmax}\big(\mathrm{ReLU}(w \odot H^{cb})\, W^1\big)

    For K = 1, H^cb contains H twice, as in the formula. In a large graph :math:`\hat A_* H` is estimated
    (:func:`gcnsl.reconnection.in_groups.reconnect_at_any_size`). Without spectral features, F W⁰_F is left out, but the
    ½ of the average stays, so that F alone makes the difference.

    Args:
        spectral_channels: Number of spectral features per node (c); 0 for none.

    Shapes:
        x (n × d), dense or sparse; edge_index (2 × E) or adjacency Â (n × n); spectral F (n × c) → n × C.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, spectral_channels: int = 0, **options: Any
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **options)
        config, self.spectral_channels = self.config, check_whole("spectral_channels", spectral_channels)
        steps = [config.rounds - 1, config.rounds] if config.use_adjacency else []
        over_a = ["own features" if k == 0 else f"A ({k} step{'s' if k > 1 else ''})" for k in steps]
        self.branch_names = ["own features", *over_a, *(["A*"] if config.use_reconnected else [])]
        self.learns_graph, self.reads_edges = config.use_reconnected, config.use_adjacency
        self.lin_x = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.lin_spectral = FeatureLinear(spectral_channels, hidden_channels, bias=False) if spectral_channels else None
        q = config.similarity_channels
        self.similarity = FeatureLinear(in_channels, q, bias=False) if config.use_reconnected else None
        parts = 2 if config.merge == "concat" and spectral_channels else 1
        self.gate = nn.Parameter(torch.ones(len(self.branch_names) * parts * hidden_channels))
        self.lin_out = FeatureLinear(len(self.gate), out_channels, bias=False)
        self._memory = PairMemory()
        self.reset_parameters()

    @classmethod
    def precompute(cls, config: GCNSLConfig, graph: Data, *, seed: int, root: Folder = None) -> SpectralColumns | None:
        """The spectral features of the normalised X."""
        if not config.spectral_channels:
            return None
        c, m = config.n_components, max(config.n_anchors, config.n_components)
        sizes: dict[str, Any] = {"n_components": c, "n_anchors": m, "scale": config.spectral_scale}
        transformer = SpectralFeatures(config.spectral_method, random_state=seed, **sizes)
        return SpectralColumns(transformer.fit_transform(graph.x).contiguous(), transformer)

    @classmethod
    def from_state(cls, config: Any, plain: Any, tensors: dict[str, Tensor], graph: Data) -> SpectralColumns | None:
        """The saved spectral features."""
        if not config.spectral_channels:
            return None
        return SpectralColumns(tensors["values"], SpectralFeatures.from_state(plain, tensors, graph.x))

    @classmethod
    def matrices(cls, config: GCNSLConfig, graph: Data) -> tuple[Matrix, ...]:
        """Â."""
        return (graph_adjacency(graph, self_loops=config.self_loops, norm=config.adjacency_norm),)

    @classmethod
    def inputs(cls, config: Any, graph: Data, *, precomputed: Any, seed: int) -> tuple[Matrix, ...]:
        """The shifted X, Â and F."""
        nothing = torch.empty(graph.num_nodes, 0, dtype=graph.x.dtype)
        spectral = nothing if precomputed is None else precomputed.values
        x = fastest_form(shift_features(graph.x, config.feature_shift, seed=seed))
        return x, *cls.matrices(config, graph), spectral

    def each_branch(
        self,
        x: Matrix,
        adjacency: Any = None,
        spectral: Tensor | None = None,
        *,
        known: int | None = None,
        compared: Matrix | None = None,
    ) -> list[Tensor]:
        """The blocks of H^cb that are in use: H, H_A^(K-1), H_A^(K) and H_A*, all of the same shape.

        The nodes after the first ``known`` ones are new: A* joins them to known nodes and to themselves, so that other
        new nodes influence them only through the given graph. With ``compared`` (n × d), A* is learned from these rows
        instead of X.
        """
        from_x, to_directions = self._first_products(x)
        h = self._merged(from_x, spectral)
        branches = [h]
        if self.config.use_adjacency:
            before, after = h, adjacency @ h
            for _ in range(self.config.rounds - 1):
                before, after = after, adjacency @ after
            branches += [before, after]
        if self.learns_graph:
            z = unit_rows(to_directions) if compared is None else self.directions(compared)
            branches.append(self._reconnect(z, h, known))
        return branches

    @torch.no_grad()
    def learned_graph(self, x: Matrix, *_: Any, rows: slice | None = None) -> tuple[Tensor, Tensor]:
        """The learned graph A*, or some rows of it: edge_index (2 × E) and similarities (E)."""
        return edges_of_rows(self.directions(x), self.config.epsilon, rows)

    def comparisons(self, x: Matrix, *_: Any) -> list[ComparedRows]:
        """What the learned graph compares."""
        if self.similarity is None:
            return []
        return [ComparedRows("A*", "features", x, self.similarity.weight, self.config.epsilon)]

    def directions(self, x: Matrix) -> Tensor:
        """Unit rows x_i Q / ‖x_i Q‖ (n × q), whose inner products are the similarities."""
        if self.similarity is None:
            raise InputError("the model has no learned graph: build it with use_reconnected=True")
        return unit_rows(x @ self.similarity.weight.T)

    def _first_products(self, x: Matrix) -> tuple[Tensor, Tensor]:
        """X W⁰_X with dropout on X (n × p), and X Q without (n × q); a single product if nothing is dropped."""
        weight, dropped = self.lin_x.weight, drop_entries(x, self.config.dropout, training=self.training)
        if self.similarity is None:
            return dropped @ weight.T, self.gate.new_empty(0)
        if dropped is not x:
            return dropped @ weight.T, x @ self.similarity.weight.T
        both = x @ torch.cat([weight, self.similarity.weight]).T
        return both[:, : len(weight)], both[:, len(weight) :]

    def _merged(self, from_x: Tensor, spectral: Tensor | None) -> Tensor:
        """H, from X W⁰_X and F."""
        if self.lin_spectral is None:
            return functional.relu(from_x if self.config.merge == "concat" else from_x / 2)
        if spectral is None or spectral.shape != (len(from_x), self.spectral_channels):
            found = "is None" if spectral is None else f"has shape {tuple(spectral.shape)}"
            raise InputError(f"spectral {found}: give F ({len(from_x)} × {self.spectral_channels})")
        from_spectral = self.lin_spectral(dropout(spectral, self.config.dropout, training=self.training))
        if self.config.merge == "concat":
            return functional.relu(torch.cat([from_x, from_spectral], dim=1))
        return functional.relu((from_x + from_spectral) / 2)

    def _reconnect(self, z: Tensor, h: Tensor, known: int | None) -> Tensor:
        """Â* H. In the row of a new node i, A* has s_ij for known nodes j, and s_ii = 1."""
        if known is None or check_whole("known", known, least=1, most=len(z), why="x has no more rows") == len(z):
            return reconnect_at_any_size(z, h, self.config.epsilon, training=self.training, memory=self._memory)
        keys, values = z[:known], h[:known]
        rows = [reconnect_at_any_size(keys, values, self.config.epsilon, training=self.training)]
        for new, own in zip(torch.split(z[known:], _NEW_ROWS), torch.split(h[known:], _NEW_ROWS), strict=True):
            (row, _), similarity = reconnected_edges(new, self.config.epsilon, keys=keys)
            degree = similarity.new_zeros(len(new)).index_add(0, row, similarity)[:, None]
            itself = new.any(dim=1, keepdim=True).to(h.dtype)  # zero rows are similar to nothing
            total = degree * reconnect(new, values, self.config.epsilon, keys=keys) + itself * own
            rows.append(total / torch.where(degree + itself > 0, degree + itself, 1.0))
        return torch.cat(rows)
