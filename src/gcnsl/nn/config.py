"""The hyper-parameters of every network: name, meaning, range, default and search range, each stated here only.

Nothing here loads torch, so that a wrong value is refused at once. A configuration knows where its model is, and asks
it for the inputs that it makes of a graph (:class:`gcnsl.nn.graph_model.GraphModel`).
"""

from __future__ import annotations

import os
import pkgutil
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from gcnsl.checks import EPSILON_BOUNDS
from gcnsl.errors import ArgumentError
from gcnsl.options import ALL, Log, OneOf, Options, Steps, option, redeclared

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch_geometric.data import Data

    from gcnsl.nn.graph_model import GraphModel
    from gcnsl.sparse import Matrix

Folder = str | os.PathLike[str] | None
FeatureNorm = Literal["none", "row", "l2"]
Standardize = Literal["auto", "always", "never"]
AdjacencyNorm = Literal["symmetric", "row"]
Direction = Literal["undirected", "out", "in"]
"""The neighbours that a node aggregates: all, those it points to, or those that point to it."""
HiddenNorm = Literal["none", "batch", "layer"]

_WEIGHTS = frozenset({"weights"})
_FORMS: dict[str, Any] = {"search": ALL, "of_inputs": True}
_SHARE: dict[str, Any] = {"least": 0, "most": 1}
_DROPOUT: dict[str, Any] = {"least": 0, "below": 1, "search": Steps(0.0, 0.8, 0.1)}
_HIGH_DROPOUT: dict[str, Any] = {**_DROPOUT, "search": Steps(0.0, 0.9, 0.1)}
_WIDTH: dict[str, Any] = {"least": 1, "search": OneOf(16, 32, 48, 64, 128)}
_WIDE: dict[str, Any] = {"least": 1, "search": OneOf(64, 128, 256)}
"""For methods whose literature finds wider networks better."""
_LAYERS: dict[str, Any] = {"least": 1, "most": 64}
_DEEP: dict[str, Any] = {**_LAYERS, "search": OneOf(2, 3, 4, 6, 8, 10, 12, 15)}
_HEADS: dict[str, Any] = {"least": 0, "most": 16, "search": OneOf(0, 1)}
_NORMALISED: dict[str, Any] = {"meaning": "How Â is normalised: D^-1/2 A D^-1/2 or D^-1 A.", "search": ALL}
_LOOPS: dict[str, Any] = {"meaning": "Whether Â has a loop at every node.", "search": ALL}
_HIDDEN_NORM = "Normalisation before each ReLU: of columns (batch), of rows (layer) or none."
_DROP_FEATURES = "Whether there is dropout before the first convolution, too."


class Precomputed(Protocol):
    """What is computed from the training graph once and saved with the model, such as spectral features."""

    def grown(self, graph: Data) -> Precomputed:
        """The same for a graph whose first nodes are these and whose other nodes are new, or an InputError."""
        ...

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON and tensors by name, from which ``from_state`` restores it."""
        ...


@dataclass(frozen=True)
class ModelConfig(Options):
    """The hyper-parameters of a model, how its inputs are made from a graph, and how it is built.

    ``model(*inputs)`` returns the logits of all nodes (n × C).
    """

    model: ClassVar[str] = "gcnsl.nn.graph_model:GraphModel"
    """Where the model's class is, from the class statement; it is loaded when it is first needed."""
    tells_new_nodes: ClassVar[bool] = False
    """Whether the forward pass takes ``known``, the number of nodes of the training graph."""
    tells_kinds: ClassVar[bool] = False
    """Whether each relation of the edges has weights or columns of its own."""

    feature_norm: FeatureNorm = option("row", "Divide rows of X by Σ|x| (row) or their length (l2).", **_FORMS)
    standardize: Standardize = option(
        "auto",
        "Give columns other than 0/1 mean 0 and variance 1 instead; auto does if they are dense and mostly nonzero.",
        of_inputs=True,
    )

    @property
    def uses(self) -> frozenset[str]:
        """What the model reads of the edges besides ``edge_index``: of ``"weights"``, ``"directions"``, ``"kinds"``."""
        direction, tells_kinds = getattr(self, "direction", None), self.tells_kinds and getattr(self, "labels", True)
        kinds = frozenset({"kinds"} if tells_kinds else ())
        if direction is None:
            return kinds
        return kinds | (_WEIGHTS if direction == "undirected" else _WEIGHTS | {"directions"})

    def __init_subclass__(cls, model: str | None = None) -> None:
        cls.model = model or cls.model

    def precompute(self, graph: Data, *, seed: int, root: Folder = None) -> Precomputed | None:
        """What has to be computed from the training graph once; ``root`` is a folder to search for files first."""
        return self._model.precompute(self, graph, seed=seed, root=root)

    def from_state(self, plain: dict[str, Any], tensors: dict[str, Tensor], graph: Data) -> Precomputed | None:
        """The inverse of :meth:`Precomputed.state`, for the graph that it was computed from."""
        return self._model.from_state(self, plain, tensors, graph)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """What the model reads, on the CPU; the features of the graph are already normalised."""
        return self._model.inputs(self, graph, precomputed=precomputed, seed=seed)

    def build(self, in_channels: int, out_channels: int, num_nodes: int, num_relations: int = 1) -> nn.Module:
        """The model for so many features, classes, nodes and relations, with weights from torch's generator."""
        channels = {"in_channels": in_channels, "out_channels": out_channels}
        channels |= {"num_nodes": num_nodes, "num_relations": num_relations}
        names = signature(self._model).parameters
        return self._model(**{name: channels[name] if name in channels else getattr(self, name) for name in names})

    @property
    def _model(self) -> type[GraphModel]:
        found: type[GraphModel] = pkgutil.resolve_name(self.model)
        return found


@dataclass(frozen=True)
class DirectedConfig(ModelConfig):
    """The hyper-parameters of a model that can see a graph along its arcs, and that uses the weights of edges."""

    direction: Direction = option("undirected", "Neighbours to aggregate: undirected, out or in.", search=ALL)


@dataclass(frozen=True)
class BlocksConfig(ModelConfig):
    """The hyper-parameters of a network whose convolutions may be in :class:`gcnsl.nn.residual.ResidualBlocks`."""

    blocks: int = option(0, "Residual blocks, which replace the layers.", least=0, most=64, search=OneOf(0, 2, 3, 4, 5))
    structural_features: bool = option(False, "Whether degrees and eigenvectors are features, too.", **_FORMS)


@dataclass(frozen=True)
class MLPConfig(ModelConfig, model="gcnsl.nn.mlp:MLP"):
    """Hyper-parameters of :class:`MLP`."""

    hidden_channels: int = option(64, "Width of the hidden layers.", **_WIDTH)
    num_layers: int = option(2, "Number of linear maps (L).", **_LAYERS)
    dropout: float = option(0.5, "Dropout before each linear map.", **_DROPOUT)


@dataclass(frozen=True)
class GCNConfig(BlocksConfig, model="gcnsl.nn.gcn:GCN"):
    """Hyper-parameters of :class:`GCN`."""

    uses: ClassVar[frozenset[str]] = _WEIGHTS | {"kinds"}
    hidden_channels: int = option(64, "Width of the hidden layers.", **_WIDE)
    num_layers: int = option(2, "Number of convolutions (L).", **_DEEP)
    dropout: float = option(0.5, "Dropout before each convolution.", **_DROPOUT)
    drop_features: bool = option(True, _DROP_FEATURES, search=ALL)
    residual: bool = option(False, "Whether to add a linear map of its input (V) to each convolution.", search=ALL)
    norm: HiddenNorm = option("none", _HIDDEN_NORM, search=ALL)
    self_loops: bool = option(True, **_LOOPS)
    adjacency_norm: AdjacencyNorm = option("symmetric", **_NORMALISED)


@dataclass(frozen=True)
class GATConfig(BlocksConfig, model="gcnsl.nn.gat:GAT"):
    """Hyper-parameters of :class:`GAT`."""

    hidden_channels: int = option(8, "Width of each head of the first layer.", least=1)
    heads: int = option(8, "Number of heads of the first layer.", least=1)
    dropout: float = option(0.6, "Dropout before each layer and on the attention α.", **_DROPOUT)


@dataclass(frozen=True)
class MixHopConfig(ModelConfig, model="gcnsl.nn.mixhop:MixHop"):
    """Hyper-parameters of :class:`MixHop`."""

    uses: ClassVar[frozenset[str]] = _WEIGHTS
    feature_norm: FeatureNorm = redeclared(ModelConfig, "feature_norm", "l2")
    hidden_channels: int = option(
        64, "Width of the hidden layers for each power.", least=1, search=OneOf(16, 21, 32, 48, 64, 128, 192)
    )
    powers: tuple[int, ...] = option((0, 1, 2), "The powers of Â (P); all different.", least=0, most=64)
    num_layers: int = option(2, "Number of layers (L).", **_LAYERS)
    input_dropout: float = option(0.7, "Dropout on X.", **_DROPOUT)
    dropout: float = option(0.9, "Dropout before each layer but the first.", **_HIGH_DROPOUT)
    self_loops: bool = option(True, **_LOOPS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.powers or len(set(self.powers)) < len(self.powers):
            raise ArgumentError("powers", self.powers, "must be one or more different whole numbers, such as [0, 1, 2]")


@dataclass(frozen=True)
class GeomGCNConfig(ModelConfig, model="gcnsl.nn.geom_gcn:GeomGCN"):
    """Hyper-parameters of :class:`GeomGCN`."""

    hidden_channels: int = option(16, "Width of the hidden layer for each of the nine divisions (p).", **_WIDTH)
    dropout: float = option(0.5, "Dropout before each layer.", **_DROPOUT)
    embedding: Literal["isomap", "poincare", "struc2vec"] = option("isomap", "The latent space.", search=ALL)
    source: Literal["computed", "published"] = option(
        "computed", "The authors' neighbourhoods, or ours.", of_inputs=True
    )


@dataclass(frozen=True)
class H2GCNConfig(ModelConfig, model="gcnsl.nn.h2gcn:H2GCN"):
    """Hyper-parameters of :class:`H2GCN`: one round is H2GCN-1, two are H2GCN-2."""

    hidden_channels: int = option(64, "Width of the embedding (p).", **_WIDTH)
    rounds: int = option(2, "Rounds of aggregation (K); each doubles the width.", least=1, most=8)
    dropout: float = option(0.5, "Dropout before the last linear map.", **_DROPOUT)
    relu: bool = option(True, "Whether the embedding ends in a ReLU (σ).", search=ALL)


@dataclass(frozen=True)
class NLGNNConfig(ModelConfig, model="gcnsl.nn.nlgnn:NLGNN"):
    """Hyper-parameters of :class:`NLGNN`."""

    hidden_channels: int = option(48, "Width of the hidden layer.", least=1, search=OneOf(16, 32, 48, 64, 96, 128))
    embedding: Literal["mlp", "gcn"] = option("mlp", "The network that embeds the nodes, of two layers.", search=ALL)
    kernel_size: int = option(5, "Number of nodes in the window of a convolution; odd.", least=1, search=OneOf(3, 5))
    dropout: float = option(0.5, "Dropout before the embedding's layers; a GCN reads all of X.", **_DROPOUT)
    conv_dropout: float = option(0.5, "Dropout between the convolutions.", **_DROPOUT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel_size % 2 == 0:
            raise ArgumentError("kernel_size", self.kernel_size, "must be odd: a node is in the middle of its window")


@dataclass(frozen=True)
class SAGEConfig(DirectedConfig, BlocksConfig, model="gcnsl.nn.sage:SAGE"):
    """Hyper-parameters of :class:`SAGE`."""

    tells_kinds: ClassVar[bool] = True
    hidden_channels: int = option(64, "Width of the hidden layers.", **_WIDE)
    num_layers: int = option(2, "Number of convolutions (L).", **_DEEP)
    dropout: float = option(0.5, "Dropout before each convolution.", **_DROPOUT)
    drop_features: bool = option(True, _DROP_FEATURES, search=ALL)
    norm: HiddenNorm = option("none", _HIDDEN_NORM, search=ALL)


@dataclass(frozen=True)
class LINKXConfig(DirectedConfig, model="gcnsl.nn.linkx:LINKX"):
    """Hyper-parameters of :class:`LINKX`."""

    tells_kinds: ClassVar[bool] = True
    feature_norm: FeatureNorm = redeclared(DirectedConfig, "feature_norm", "none")
    direction: Direction = redeclared(DirectedConfig, "direction", "out")
    hidden_channels: int = option(64, "Width of all layers but the last (p).", **_WIDE)
    link_layers: int = option(1, "Number of linear maps of MLP_A.", **_LAYERS, search=Steps(1, 2))
    feature_layers: int = option(1, "Number of linear maps of MLP_X.", **_LAYERS, search=Steps(1, 2))
    num_layers: int = option(2, "Number of linear maps of MLP_f.", **_LAYERS, search=Steps(1, 4))
    dropout: float = option(0.5, "Dropout before each linear map of MLP_f but the first.", **_DROPOUT)


@dataclass(frozen=True)
class DirGCNConfig(ModelConfig, model="gcnsl.nn.dir_gcn:DirGCN"):
    """Hyper-parameters of :class:`DirGCN`."""

    uses: ClassVar[frozenset[str]] = _WEIGHTS | {"directions"}
    feature_norm: FeatureNorm = redeclared(ModelConfig, "feature_norm", "none")
    hidden_channels: int = option(128, "Width of each layer.", **_WIDE)
    num_layers: int = option(4, "Number of layers (L).", **_LAYERS, search=Steps(2, 6))
    alpha: float = option(0.5, "Share of out-neighbours (α).", **_SHARE, search=OneOf(0.0, 0.5, 1.0))
    jump: Literal["max", "cat"] = option("max", "How layers are combined: entry by entry or side by side.", search=ALL)
    unit_rows: bool = option(True, "Whether the rows of each layer are divided by their length.", search=ALL)
    dropout: float = option(0.0, "Dropout after each layer.", **_DROPOUT)


@dataclass(frozen=True)
class GPRGNNConfig(ModelConfig, model="gcnsl.nn.gpr_gnn:GPRGNN"):
    """Hyper-parameters of :class:`GPRGNN`."""

    uses: ClassVar[frozenset[str]] = _WEIGHTS
    hidden_channels: int = option(64, "Width of the hidden layer.", **_WIDTH)
    hops: int = option(10, "Largest power of Â (K).", **_LAYERS)
    restart: float = option(0.1, "Restart probability of PageRank (α).", **_SHARE, search=OneOf(0.1, 0.2, 0.5, 0.9))
    dropout: float = option(0.5, "Dropout before each linear map.", **_DROPOUT)
    propagation_dropout: float = option(0.5, "Dropout before the powers of Â.", **_DROPOUT)


@dataclass(frozen=True)
class FSGNNConfig(DirectedConfig, model="gcnsl.nn.fsgnn:FSGNN"):
    """Hyper-parameters of :class:`FSGNN`."""

    direction: Direction = redeclared(DirectedConfig, "direction", "out")
    hidden_channels: int = option(64, "Width for each kind of features (p).", **_WIDTH)
    hops: int = option(3, "Largest power of the adjacency matrices (K).", **_LAYERS, search=Steps(1, 8))
    dropout: float = option(0.5, "Dropout before the last linear map.", **_DROPOUT)
    selection_lr: float = option(0.01, "Learning rate of the scores a of the kinds.", above=0, search=Log(0.002, 0.05))
    selection_weight_decay: float = option(1e-3, "L2 penalty on these scores.", least=0, search=Log(1e-5, 0.1))


@dataclass(frozen=True)
class ACMGCNConfig(DirectedConfig, model="gcnsl.nn.acm_gcn:ACMGCN"):
    """Hyper-parameters of :class:`ACMGCN`: ACM-GCN+ by default, ACM-GCN without structure, ACM-GCN++ with residual."""

    feature_norm: FeatureNorm = redeclared(DirectedConfig, "feature_norm", "none")
    hidden_channels: int = option(64, "Width of the hidden layer.", **_WIDTH)
    structure: bool = option(True, "Whether there is a channel A·W, which knows nodes by their links.", search=ALL)
    residual: bool = option(False, "Whether to add ReLU(X W + b) to the hidden layer.", search=ALL)
    relu_first: bool = option(False, "Whether ReLU comes before the filters (ACMII) instead of after them.", search=ALL)
    dropout: float = option(0.5, "Dropout before each layer.", **_HIGH_DROPOUT)


@dataclass(frozen=True)
class GCNSLConfig(ModelConfig, model="gcnsl.nn.gcn_sl:GCNSL"):
    """Hyper-parameters of :class:`GCNSL`, including choices that the paper leaves open.

    The defaults suit graphs of any homophily. ``bench/defaults.py`` chose them on validation nodes of graphs that are
    not used in the paper. A search finds every value of the paper's tables, and varies what the paper leaves open. The
    switches of the ablation are not searched for: without A* it would be another method.
    """

    uses: ClassVar[frozenset[str]] = _WEIGHTS
    tells_new_nodes: ClassVar[bool] = True
    feature_norm: FeatureNorm = redeclared(ModelConfig, "feature_norm", "l2")
    hidden_channels: int = option(32, "Number of columns of W⁰_X and of W⁰_F (p).", **_WIDTH)
    similarity_channels: int = option(16, "Number of columns of Q (q).", least=1, search=OneOf(8, 16, 32))
    rounds: int = option(2, "Number of rounds of aggregation over Â (K).", **_LAYERS, search=Steps(1, 5))
    epsilon: float = option(
        0.95, "Smallest cosine similarity in A* (ε).", **EPSILON_BOUNDS, search=Steps(0.5, 0.99, 0.01)
    )
    merge: Literal["concat", "average"] = option("concat", "How X W⁰_X and F W⁰_F are merged (GCN-SL_cc, GCN-SL_av).")
    dropout: float = option(0.5, "Dropout on X and F, but not in similarities, and before the last layer.", **_DROPOUT)
    use_adjacency: bool = option(True, "Whether to use the branches over the given graph Â.")
    use_reconnected: bool = option(True, "Whether to use the branch over the learned graph A*.")
    use_spectral: bool = option(True, "Whether to use the spectral features F.", of_inputs=True)
    n_components: int = option(25, "Number of spectral features (c).", least=0, search=Steps(5, 100), of_inputs=True)
    n_anchors: int = option(500, "Anchors of ESC-ANCH (m).", least=1, search=Steps(100, 700, 100), of_inputs=True)
    spectral_method: Literal["esc-anch", "esc", "sc"] = option("esc-anch", "How F is computed.", of_inputs=True)
    spectral_scale: Literal["unit", "sqrt-n"] = option("sqrt-n", "Length of the columns of F: 1 or √n.", **_FORMS)
    feature_shift: float = option(0.5, "Added to one random feature, after F is computed.", least=0, of_inputs=True)
    self_loops: bool = option(False, **_LOOPS)
    adjacency_norm: AdjacencyNorm = option("symmetric", **_NORMALISED)

    @property
    def spectral_channels(self) -> int:
        """Number of spectral features that the model reads."""
        return self.n_components if self.use_spectral else 0


@dataclass(frozen=True)
class GCNSLPlusConfig(ModelConfig, model="gcnsl.nn.gcn_sl_plus:GCNSLPlus"):
    """Hyper-parameters of :class:`GCNSLPlus`. A search may do without its parts, where validation nodes say so."""

    tells_new_nodes: ClassVar[bool] = True
    feature_norm: FeatureNorm = redeclared(ModelConfig, "feature_norm", "l2", search=OneOf("none", "l2"))
    direction: Literal["auto", "undirected", "out", "in", "both"] = option(
        "auto",
        "Neighbours to aggregate: out, in, both (separate weights) or undirected; auto is out.",
        search=OneOf("auto", "undirected", "both"),
    )
    hidden_channels: int = option(64, "Columns of W_X and of W_A (p).", least=1, search=OneOf(16, 64, 128, 256))
    rounds: int = option(2, "Rounds of aggregation over Â (K).", least=0, most=64, search=OneOf(1, 2, 3, 4, 6))
    neighbours_heads: int = option(1, "Number of heads of A* that compare whom nodes link to.", **_HEADS)
    features_heads: int = option(0, "Number of heads of A* that compare features.", **_HEADS)
    similarity_channels: int = option(16, "Number of columns of Q in each head (q).", least=1, search=OneOf(16, 32, 64))
    mean_degree: float | None = option(
        30.0,
        "Neighbours in A* that set ε in each step, at most a tenth of the nodes; none for a fixed ε.",
        above=0,
        search=OneOf(3.0, 10.0, 30.0, 100.0),
    )
    epsilon: float = option(0.9, "Smallest similarity that joins two nodes, if mean_degree is none.", **EPSILON_BOUNDS)
    contrast: float = option(1.0, "Weight of the contrastive term in the loss.", least=0, search=OneOf(0.1, 1.0, 3.0))
    temperature: float = option(0.1, "Temperature of the contrastive term (τ).", least=0.03)
    structure_branch: bool = option(True, "Whether to use the branch ReLU(A W_A).", search=ALL)
    dropout: float = option(0.5, "Dropout before the last layer.", least=0, below=1, search=Steps(0.3, 0.8, 0.1))
    input_dropout: float = option(0.5, "Dropout on X.", least=0, below=1, search=OneOf(0.0, 0.3, 0.5, 0.8))
    link_dropout: float = option(0.0, "Dropout on A in ReLU(A W_A).", least=0, below=1, search=OneOf(0.0, 0.5))
    normalize_branches: bool = option(False, "Whether rows of every branch are divided by their length.", search=ALL)
    link_decay: float = option(1e-3, "Weight decay of the Q and of W_A.", least=0, search=Log(1e-4, 3e-3))
    link_lr: float | None = option(None, "Learning rate of the Q and of W_A; none for that of the others.", above=0)
    self_loops: bool = option(False, **_LOOPS)
    adjacency_norm: AdjacencyNorm = option("row", **_NORMALISED)
