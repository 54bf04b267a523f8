"""GCN-SL (section 3.3 and algorithm 1 of the paper)."""

from dataclasses import dataclass
from typing import Literal, get_args, overload

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.nn.checks import check_at_least, check_choice, check_dropout
from gcnsl.nn.config import Input
from gcnsl.nn.dropout import drop_entries
from gcnsl.nn.preprocessing import (
    AdjacencyNorm,
    FeatureNorm,
    feature_matrix,
    normalize_features,
    normalized_adjacency,
    shift_features,
)
from gcnsl.nn.sparse import SparseMatrix
from gcnsl.reconnection import PairMemory, reconnect, reconnected_edges
from gcnsl.spectral import SpectralFeatures

Merge = Literal["concat", "average"]
SpectralMethod = Literal["esc-anch", "esc", "sc"]
SpectralScale = Literal["unit", "sqrt-n"]
_NEW_ROWS = 1024
"""So many new nodes at a time are compared with the known ones, because their edges are listed for it."""


@dataclass(frozen=True)
class GCNSLConfig:
    """Hyper-parameters of GCN-SL, and switches for what the paper leaves open.

    The defaults are for graphs of any homophily: ``bench/defaults.py`` chose them on validation nodes of graphs that
    are not the paper's. For the paper's own see :mod:`gcnsl.experiments.paper`.

    Args:
        hidden_channels, similarity_channels, rounds, epsilon, merge, dropout, use_adjacency, use_reconnected: See
            :class:`GCNSL`; the paper's p, q, K, ε.
        n_components: Spectral features of a node (c); 0 for none.
        n_anchors: Anchors of ESC-ANCH (m); at most all nodes.
        spectral_method: ``"esc-anch"``, ``"esc"`` or ``"sc"``.
        spectral_scale: ``"unit"``, or ``"sqrt-n"`` for entries near 1 on a graph of any size.
        feature_norm: What X is divided by before anything else: ``"none"``, ``"row"`` or ``"l2"``.
        feature_shift: Added to one feature of every node, after F is made.
        self_loops: Whether Â has them.
        adjacency_norm: ``"symmetric"`` or ``"row"``.
    """

    hidden_channels: int = 32
    similarity_channels: int = 16
    rounds: int = 2
    epsilon: float = 0.95
    merge: Merge = "concat"
    dropout: float = 0.5
    use_adjacency: bool = True
    use_reconnected: bool = True
    n_components: int = 25
    n_anchors: int = 500
    spectral_method: SpectralMethod = "esc-anch"
    spectral_scale: SpectralScale = "sqrt-n"
    feature_norm: FeatureNorm = "l2"
    feature_shift: float = 0.5
    self_loops: bool = False
    adjacency_norm: AdjacencyNorm = "symmetric"

    def prepare(self, data: Data, *, seed: int) -> tuple[Input, ...]:
        """X shifted, F and Â."""
        x = normalize_features(data.x, self.feature_norm)
        spectral = self.spectral_features(seed).fit_transform(x) if self.n_components else torch.empty(len(x), 0)
        return self.inputs(x, spectral, data.edge_index, seed=seed)

    def inputs(self, x: Tensor, spectral: Tensor, edge_index: Tensor, *, seed: int) -> tuple[Input, ...]:
        """X shifted, F and Â from normalised features, F and the edges: what :meth:`prepare` does once it has F."""
        adjacency = normalized_adjacency(edge_index, len(x), self_loops=self.self_loops, norm=self.adjacency_norm)
        return feature_matrix(shift_features(x, self.feature_shift, seed=seed)), spectral, adjacency

    def spectral_features(self, seed: int) -> SpectralFeatures:
        """The transformer that makes F."""
        return SpectralFeatures(
            self.spectral_method,
            n_components=self.n_components,
            n_anchors=max(self.n_anchors, self.n_components),
            scale=self.spectral_scale,
            random_state=seed,
        )

    def build(self, data: Data) -> "GCNSL":
        """The model, its weights drawn from torch's generator."""
        return GCNSL(
            data.num_features,
            self.n_components,
            self.hidden_channels,
            len(data.class_names),
            similarity_channels=self.similarity_channels,
            rounds=self.rounds,
            epsilon=self.epsilon,
            merge=self.merge,
            dropout=self.dropout,
            use_adjacency=self.use_adjacency,
            use_reconnected=self.use_reconnected,
        )


class GCNSL(nn.Module):
    r"""Graph convolution on two graphs, the given one and one that is learned.

    .. math::
        H &= \mathrm{ReLU}(X W^0_X \,\|\, F W^0_F)
            \quad\text{or}\quad \mathrm{ReLU}\big(\tfrac12 (X W^0_X + F W^0_F)\big) \\
        H_{A_*} &= \hat A_* H, \qquad
            s_{ij} = \cos(x_i Q, x_j Q), \quad (A_*)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon] \\
        H^{(k)}_A &= \hat A H^{(k-1)}_A, \quad H^{(0)}_A = H \\
        H^{cb} &= H \,\|\, H^{(K-1)}_A \,\|\, H^{(K)}_A \,\|\, H_{A_*} \\
        Z &= \mathrm{softmax}\big(\mathrm{ReLU}(w \odot H^{cb})\, W^1\big)

    The forward pass returns the logits, Z before the softmax. For K = 1 the formula holds H twice, and so does H^cb.

    Args:
        in_channels: Features of a node (d), after the shift (:func:`gcnsl.nn.preprocessing.shift_features`).
        spectral_channels: Spectral features of a node (c); 0 for none.
        hidden_channels: Columns of W⁰_X and of W⁰_F (p).
        out_channels: Classes.
        similarity_channels: Columns of Q (q).
        rounds: Rounds of aggregation over Â (K).
        epsilon: Smallest similarity that connects two nodes (ε).
        merge: ``"concat"`` is GCN-SL_cc, ``"average"`` is GCN-SL_av.
        dropout: On X and F before the first layer and on H^final before W¹; never on X where it decides similarities.
        use_adjacency: Whether the branches over Â are there.
        use_reconnected: Whether the branch over Â* is there.

    Shapes:
        x (n × d), a tensor or a :class:`~gcnsl.nn.sparse.SparseMatrix`; spectral (n × c); adjacency Â (n × n) → n × C.
    """

    def __init__(
        self,
        in_channels: int,
        spectral_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        similarity_channels: int = 16,
        rounds: int = 1,
        epsilon: float = 0.8,
        merge: Merge = "concat",
        dropout: float = 0.4,
        use_adjacency: bool = True,
        use_reconnected: bool = True,
    ) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        check_at_least(1, similarity_channels=similarity_channels, rounds=rounds)
        check_at_least(0, spectral_channels=spectral_channels)
        check_choice(get_args(Merge), merge=merge)
        check_dropout(dropout=dropout)
        if not 0 < epsilon <= 1:
            raise InputError(f"epsilon({epsilon}) must be in (0, 1]: it is a cosine")
        self.in_channels, self.spectral_channels, self.out_channels = in_channels, spectral_channels, out_channels
        self.rounds, self.epsilon, self.merge, self.dropout = rounds, epsilon, merge, dropout
        self.use_adjacency, self.use_reconnected = use_adjacency, use_reconnected

        self.lin_x = nn.Linear(in_channels, hidden_channels, bias=False)
        self.lin_spectral = nn.Linear(spectral_channels, hidden_channels, bias=False) if spectral_channels else None
        self.similarity = nn.Linear(in_channels, similarity_channels, bias=False) if use_reconnected else None
        parts = 2 if merge == "concat" and spectral_channels else 1
        branches = 1 + 2 * use_adjacency + use_reconnected
        self.gate = nn.Parameter(torch.ones(branches * parts * hidden_channels))
        self.lin_out = nn.Linear(len(self.gate), out_channels, bias=False)
        self._memory = PairMemory()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew (Glorot's uniform distribution); the gate starts at 1."""
        for layer in (self.lin_x, self.lin_spectral, self.similarity, self.lin_out):
            if layer is not None:
                nn.init.xavier_uniform_(layer.weight)
        nn.init.ones_(self.gate)

    def forward(
        self,
        x: Tensor | SparseMatrix,
        spectral: Tensor | None = None,
        adjacency: SparseMatrix | None = None,
        *,
        known: int | None = None,
    ) -> Tensor:
        """Logits of every node (n × C).

        With ``known`` the nodes after the first so many are new to the model: A* connects each of them to known nodes
        and to itself, but not to another new one, so that what it predicts depends on no other new node's features
        unless an edge joins them.
        """
        branches = self.branches(x, spectral, adjacency, known=known)
        final = functional.relu(self.gate * torch.cat(branches, dim=1), inplace=True)
        logits: Tensor = self.lin_out(self._drop(final))
        return logits

    def branches(
        self,
        x: Tensor | SparseMatrix,
        spectral: Tensor | None = None,
        adjacency: SparseMatrix | None = None,
        *,
        known: int | None = None,
    ) -> list[Tensor]:
        """What H^cb is made of, as far as it is used: H; H_A^(K-1) and H_A^(K); H_A*. All are as wide as H."""
        from_x, directions = self._first_products(x)
        h = self._merged(from_x, spectral)
        branches = [h]
        if self.use_adjacency:
            if adjacency is None:
                raise InputError("adjacency is None: give Â, or build the model with use_adjacency=False")
            branches += self._aggregate(h, adjacency)
        if self.use_reconnected:
            branches.append(self._reconnect(_unit_rows(directions), h, known))
        return branches

    def enhanced_features(self, x: Tensor | SparseMatrix, spectral: Tensor | None) -> Tensor:
        """H, the first layer (n × 2p for concatenation, n × p for the average or without F)."""
        return self._merged(self._first_products(x)[0], spectral)

    def _first_products(self, x: Tensor | SparseMatrix) -> tuple[Tensor, Tensor]:
        """X W⁰_X (n × p), X with dropout, and X Q (n × q), X without: one product with X where both are the same."""
        if self.similarity is None:
            return self._drop(x) @ self.lin_x.weight.T, self.gate.new_empty(0)
        if self.training and self.dropout > 0:
            return self._drop(x) @ self.lin_x.weight.T, x @ self.similarity.weight.T
        both = x @ torch.cat([self.lin_x.weight, self.similarity.weight]).T
        return both[:, : len(self.lin_x.weight)], both[:, len(self.lin_x.weight) :]

    def _merged(self, from_x: Tensor, spectral: Tensor | None) -> Tensor:
        """H from X W⁰_X and F."""
        if self.lin_spectral is None:
            return functional.relu(from_x)
        if spectral is None:
            raise InputError(f"spectral is None: give F (n × {self.spectral_channels})")
        from_spectral = self.lin_spectral(self._drop(spectral))
        merged = torch.cat([from_x, from_spectral], dim=1) if self.merge == "concat" else (from_x + from_spectral) / 2
        return functional.relu(merged)

    def directions(self, x: Tensor | SparseMatrix) -> Tensor:
        """Unit rows x_i Q / ‖x_i Q‖ (n × q), whose inner products are the similarities."""
        if self.similarity is None:
            raise InputError("the model was built with use_reconnected=False: it learns no similarities")
        return _unit_rows(x @ self.similarity.weight.T)

    @torch.no_grad()
    def reconnected_graph(self, x: Tensor | SparseMatrix) -> tuple[Tensor, Tensor]:
        """The learned graph A*: edge_index (2 × E) and similarities (E)."""
        return reconnected_edges(self.directions(x), self.epsilon)

    def _aggregate(self, h: Tensor, adjacency: SparseMatrix) -> list[Tensor]:
        """H_A^(K-1) and H_A^(K)."""
        before, after = h, adjacency @ h
        for _ in range(self.rounds - 1):
            before, after = after, adjacency @ after
        return [before, after]

    def _reconnect(self, z: Tensor, h: Tensor, known: int | None) -> Tensor:
        """Â* H, where of a new node i the row of A* holds s_ij for known j and s_ii = 1."""
        if known is None or known == len(z):
            return reconnect(z, h, self.epsilon, memory=self._memory)
        keys, values = z[:known], h[:known]
        rows = [reconnect(keys, values, self.epsilon)]
        for new, own in zip(torch.split(z[known:], _NEW_ROWS), torch.split(h[known:], _NEW_ROWS), strict=True):
            (row, _), similarity = reconnected_edges(new, self.epsilon, keys=keys)
            degree = similarity.new_zeros(len(new)).index_add(0, row, similarity)[:, None]
            itself = new.any(dim=1, keepdim=True).to(h.dtype)  # a node without a direction is not even like itself
            total = degree * reconnect(new, values, self.epsilon, keys=keys) + itself * own
            rows.append(total / torch.where(degree + itself > 0, degree + itself, 1.0))
        return torch.cat(rows)

    @overload
    def _drop(self, values: Tensor) -> Tensor: ...
    @overload
    def _drop(self, values: Tensor | SparseMatrix) -> Tensor | SparseMatrix: ...
    def _drop(self, values: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
        return drop_entries(values, self.dropout, training=self.training)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels} + {self.spectral_channels} → {self.out_channels}, "
            f"merge={self.merge!r}, rounds={self.rounds}, epsilon={self.epsilon})"
        )


def _unit_rows(rows: Tensor) -> Tensor:
    """Rows divided by their length, zero rows left; also where their squares are too small for floating point.

    Weight decay shrinks Q towards 0 wherever A* connects nobody, and directions must stay directions. What a row is
    divided by first changes neither the result nor, the result being the same for all of it, the derivative.
    """
    largest = rows.detach().abs().amax(dim=1, keepdim=True)
    return functional.normalize(rows / torch.where(largest > 0, largest, 1.0), dim=1)
