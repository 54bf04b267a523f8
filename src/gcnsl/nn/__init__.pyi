"""The exports of gcnsl.nn for editors and type checkers, written by `python -m tools.stubs`."""

from typing import Literal

from gcnsl.nn.acm_gcn import ACMGCN as _ACMGCN
from gcnsl.nn.dir_gcn import DirGCN as _DirGCN
from gcnsl.nn.fsgnn import FSGNN as _FSGNN
from gcnsl.nn.gat import GAT as _GAT
from gcnsl.nn.gcn import GCN as _GCN
from gcnsl.nn.gcn_sl import GCNSL as _GCNSL
from gcnsl.nn.gcn_sl_plus import GCNSLPlus as _GCNSLPlus
from gcnsl.nn.geom_gcn import GeomGCN as _GeomGCN
from gcnsl.nn.gpr_gnn import GPRGNN as _GPRGNN
from gcnsl.nn.h2gcn import H2GCN as _H2GCN
from gcnsl.nn.linkx import LINKX as _LINKX
from gcnsl.nn.mixhop import MixHop as _MixHop
from gcnsl.nn.mlp import MLP as _MLP
from gcnsl.nn.nlgnn import NLGNN as _NLGNN
from gcnsl.nn.preprocessing import (
    normalize_features,
    normalized_adjacency,
    relative_weights,
    shift_features,
)
from gcnsl.nn.reconnect_conv import ReconnectConv
from gcnsl.nn.sage import SAGE as _SAGE

__all__ = [
    "ACMGCN",
    "FSGNN",
    "GAT",
    "GCN",
    "GCNSL",
    "GPRGNN",
    "H2GCN",
    "LINKX",
    "MLP",
    "NLGNN",
    "SAGE",
    "DirGCN",
    "GCNSLPlus",
    "GeomGCN",
    "MixHop",
    "ReconnectConv",
    "normalize_features",
    "normalized_adjacency",
    "relative_weights",
    "shift_features",
]

class ACMGCN(_ACMGCN):
    """Two layers f₁ and f₂ of :class:`ChannelMixing`.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layer.
        out_channels: Number of classes (C).
        num_nodes: Number of nodes of the training graph; new nodes are seen through their links to these.
        direction: Neighbours to aggregate: undirected, out or in.
        structure: Whether there is a channel A·W, which knows nodes by their links.
        residual: Whether to add ReLU(X W + b) to the hidden layer.
        relu_first: Whether ReLU comes before the filters (ACMII) instead of after them.
        dropout: Dropout before each layer.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_nodes: int | None = None,
        *,
        direction: Literal["undirected", "out", "in"] = "undirected",
        structure: bool = True,
        residual: bool = False,
        relu_first: bool = False,
        dropout: float = 0.5,
    ) -> None: ...

class DirGCN(_DirGCN):
    """Layers with a weight for each direction of the edges. The classifier sees all layers.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of each layer.
        out_channels: Number of classes (C).
        num_layers: Number of layers (L).
        alpha: Share of out-neighbours (α).
        jump: How layers are combined: entry by entry or side by side.
        unit_rows: Whether the rows of each layer are divided by their length.
        dropout: Dropout after each layer.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 4,
        alpha: float = 0.5,
        jump: Literal["max", "cat"] = "max",
        unit_rows: bool = True,
        dropout: float = 0.0,
    ) -> None: ...

class FSGNN(_FSGNN):
    """Linear maps of X, of Âᵏ X without loops and of Ãᵏ X with loops, each with a learned scale.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width for each kind of features (p).
        out_channels: Number of classes (C).
        direction: Neighbours to aggregate: undirected, out or in.
        hops: Largest power of the adjacency matrices (K).
        dropout: Dropout before the last linear map.
        selection_lr: Learning rate of the scores a of the kinds.
        selection_weight_decay: L2 penalty on these scores.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        direction: Literal["undirected", "out", "in"] = "out",
        hops: int = 3,
        dropout: float = 0.5,
        selection_lr: float = 0.01,
        selection_weight_decay: float = 0.001,
    ) -> None: ...

class GAT(_GAT):
    """Two layers of attention over neighbours; the first has several heads, the second has one.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of each head of the first layer.
        out_channels: Number of classes (C).
        blocks: Residual blocks, which replace the layers.
        heads: Number of heads of the first layer.
        dropout: Dropout before each layer and on the attention α.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = 0,
        heads: int = 8,
        dropout: float = 0.6,
    ) -> None: ...

class GCN(_GCN):
    """Graph convolutions with ReLU between them, and what makes deep ones trainable: linear skips and normalisation.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layers.
        out_channels: Number of classes (C).
        num_relations: Number of kinds of edges (R), each with weights of its own; the call then takes
            ``edge_type``.
        blocks: Residual blocks, which replace the layers.
        num_layers: Number of convolutions (L).
        dropout: Dropout before each convolution.
        drop_features: Whether there is dropout before the first convolution, too.
        residual: Whether to add a linear map of its input (V) to each convolution.
        norm: Normalisation before each ReLU: of columns (batch), of rows (layer) or none.
        self_loops: Whether Â has a loop at every node.
        adjacency_norm: How Â is normalised: D^-1/2 A D^-1/2 or D^-1 A.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_relations: int = 1,
        blocks: int = 0,
        num_layers: int = 2,
        dropout: float = 0.5,
        drop_features: bool = True,
        residual: bool = False,
        norm: Literal["none", "batch", "layer"] = "none",
        self_loops: bool = True,
        adjacency_norm: Literal["symmetric", "row"] = "symmetric",
    ) -> None: ...

class GCNSL(_GCNSL):
    """Graph convolution on two graphs, the given one and a learned one.

    Args:
        spectral_channels: Number of spectral features per node (c); 0 for none.
        in_channels: Number of features per node (d).
        hidden_channels: Number of columns of W⁰_X and of W⁰_F (p).
        out_channels: Number of classes (C).
        similarity_channels: Number of columns of Q (q).
        rounds: Number of rounds of aggregation over Â (K).
        epsilon: Smallest cosine similarity in A* (ε).
        merge: How X W⁰_X and F W⁰_F are merged (GCN-SL_cc, GCN-SL_av).
        dropout: Dropout on X and F, but not in similarities, and before the last layer.
        use_adjacency: Whether to use the branches over the given graph Â.
        use_reconnected: Whether to use the branch over the learned graph A*.
        self_loops: Whether Â has a loop at every node.
        adjacency_norm: How Â is normalised: D^-1/2 A D^-1/2 or D^-1 A.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        spectral_channels: int = 0,
        *,
        similarity_channels: int = 16,
        rounds: int = 2,
        epsilon: float = 0.95,
        merge: Literal["concat", "average"] = "concat",
        dropout: float = 0.5,
        use_adjacency: bool = True,
        use_reconnected: bool = True,
        self_loops: bool = False,
        adjacency_norm: Literal["symmetric", "row"] = "symmetric",
    ) -> None: ...

class GCNSLPlus(_GCNSLPlus):
    """Graph convolution on a given graph and on learned ones, each of which joins nodes that are alike in some way.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Columns of W_X and of W_A (p).
        out_channels: Number of classes (C).
        num_nodes: Number of nodes of the training graph; new nodes are seen through their links to these.
        direction: Neighbours to aggregate: out, in, both (separate weights) or undirected; auto is out.
        rounds: Rounds of aggregation over Â (K).
        neighbours_heads: Number of heads of A* that compare whom nodes link to.
        features_heads: Number of heads of A* that compare features.
        similarity_channels: Number of columns of Q in each head (q).
        mean_degree: Neighbours in A* that set ε in each step, at most a tenth of the nodes; none for a fixed ε.
        epsilon: Smallest similarity that joins two nodes, if mean_degree is none.
        contrast: Weight of the contrastive term in the loss.
        temperature: Temperature of the contrastive term (τ).
        structure_branch: Whether to use the branch ReLU(A W_A).
        dropout: Dropout before the last layer.
        input_dropout: Dropout on X.
        link_dropout: Dropout on A in ReLU(A W_A).
        normalize_branches: Whether rows of every branch are divided by their length.
        link_decay: Weight decay of the Q and of W_A.
        link_lr: Learning rate of the Q and of W_A; none for that of the others.
        self_loops: Whether Â has a loop at every node.
        adjacency_norm: How Â is normalised: D^-1/2 A D^-1/2 or D^-1 A.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_nodes: int,
        *,
        direction: Literal["auto", "undirected", "out", "in", "both"] = "auto",
        rounds: int = 2,
        neighbours_heads: int = 1,
        features_heads: int = 0,
        similarity_channels: int = 16,
        mean_degree: float | None = 30.0,
        epsilon: float = 0.9,
        contrast: float = 1.0,
        temperature: float = 0.1,
        structure_branch: bool = True,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        link_dropout: float = 0.0,
        normalize_branches: bool = False,
        link_decay: float = 0.001,
        link_lr: float | None = None,
        self_loops: bool = False,
        adjacency_norm: Literal["symmetric", "row"] = "row",
    ) -> None: ...

class GeomGCN(_GeomGCN):
    """Two layers with a linear map for each of nine divisions of a node's neighbours.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layer for each of the nine divisions (p).
        out_channels: Number of classes (C).
        dropout: Dropout before each layer.
        embedding: The latent space.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        dropout: float = 0.5,
        embedding: Literal["isomap", "poincare", "struc2vec"] = "isomap",
    ) -> None: ...

class GPRGNN(_GPRGNN):
    """A perceptron with two layers, and a weighted sum of what the powers of Â make of its output.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layer.
        out_channels: Number of classes (C).
        hops: Largest power of Â (K).
        restart: Restart probability of PageRank (α).
        dropout: Dropout before each linear map.
        propagation_dropout: Dropout before the powers of Â.
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
    ) -> None: ...

class H2GCN(_H2GCN):
    """Rounds of aggregation over one and two hops, without weights. The classifier sees all rounds.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the embedding (p).
        out_channels: Number of classes (C).
        rounds: Rounds of aggregation (K); each doubles the width.
        dropout: Dropout before the last linear map.
        relu: Whether the embedding ends in a ReLU (σ).
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        rounds: int = 2,
        dropout: float = 0.5,
        relu: bool = True,
    ) -> None: ...

class LINKX(_LINKX):
    """A perceptron of the rows of A, one of the rows of X, and one of both together; no node sees a neighbour's X.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of all layers but the last (p).
        out_channels: Number of classes (C).
        num_nodes: Number of nodes of the training graph; new nodes are seen through their links to these.
        num_relations: Number of kinds of edges (R), each with weights of its own; the call then takes
            ``edge_type``.
        direction: Neighbours to aggregate: undirected, out or in.
        link_layers: Number of linear maps of MLP_A.
        feature_layers: Number of linear maps of MLP_X.
        num_layers: Number of linear maps of MLP_f.
        dropout: Dropout before each linear map of MLP_f but the first.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_nodes: int,
        *,
        num_relations: int = 1,
        direction: Literal["undirected", "out", "in"] = "out",
        link_layers: int = 1,
        feature_layers: int = 1,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None: ...

class MixHop(_MixHop):
    """MixHop layers with batch normalisation and ReLU between them; the last one's powers are averaged with weights.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layers for each power.
        out_channels: Number of classes (C).
        powers: The powers of Â (P); all different.
        num_layers: Number of layers (L).
        input_dropout: Dropout on X.
        dropout: Dropout before each layer but the first.
        self_loops: Whether Â has a loop at every node.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        powers: tuple[int, ...] = (0, 1, 2),
        num_layers: int = 2,
        input_dropout: float = 0.7,
        dropout: float = 0.9,
        self_loops: bool = True,
    ) -> None: ...

class MLP(_MLP):
    """Linear maps with ReLU between them.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layers.
        out_channels: Number of classes (C).
        num_layers: Number of linear maps (L).
        dropout: Dropout before each linear map.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None: ...

class NLGNN(_NLGNN):
    """Embed the nodes, sort them by a score, convolve them in that order, and classify by both results.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layer.
        out_channels: Number of classes (C).
        embedding: The network that embeds the nodes, of two layers.
        kernel_size: Number of nodes in the window of a convolution; odd.
        dropout: Dropout before the embedding's layers; a GCN reads all of X.
        conv_dropout: Dropout between the convolutions.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        embedding: Literal["mlp", "gcn"] = "mlp",
        kernel_size: int = 5,
        dropout: float = 0.5,
        conv_dropout: float = 0.5,
    ) -> None: ...

class SAGE(_SAGE):
    """Convolutions that keep a node apart from the mean of its neighbours, with ReLU between them.

    Args:
        in_channels: Number of features per node (d).
        hidden_channels: Width of the hidden layers.
        out_channels: Number of classes (C).
        num_relations: Number of kinds of edges (R), each with weights of its own; the call then takes
            ``edge_type``.
        blocks: Residual blocks, which replace the layers.
        direction: Neighbours to aggregate: undirected, out or in.
        num_layers: Number of convolutions (L).
        dropout: Dropout before each convolution.
        drop_features: Whether there is dropout before the first convolution, too.
        norm: Normalisation before each ReLU: of columns (batch), of rows (layer) or none.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_relations: int = 1,
        blocks: int = 0,
        direction: Literal["undirected", "out", "in"] = "undirected",
        num_layers: int = 2,
        dropout: float = 0.5,
        drop_features: bool = True,
        norm: Literal["none", "batch", "layer"] = "none",
    ) -> None: ...
