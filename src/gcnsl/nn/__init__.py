"""Models, one per file. They work on tensors and know nothing about files or datasets."""

from gcnsl.nn.config import ModelConfig, Precomputed
from gcnsl.nn.gat import GAT, GATConfig
from gcnsl.nn.gcn import GCN, GCNConfig
from gcnsl.nn.gcn_sl import GCNSL, GCNSLConfig
from gcnsl.nn.gcn_sl_plus import GCNSLPlus, GCNSLPlusConfig
from gcnsl.nn.geom_gcn import GeomGCN, GeomGCNConfig
from gcnsl.nn.h2gcn import H2GCN, H2GCNConfig
from gcnsl.nn.mixhop import MixHop, MixHopConfig
from gcnsl.nn.mlp import MLP, MLPConfig
from gcnsl.nn.nlgnn import NLGNN, NLGNNConfig
from gcnsl.nn.preprocessing import normalize_features, normalized_adjacency, relative_weights, shift_features

__all__ = [
    "GAT",
    "GCN",
    "GCNSL",
    "H2GCN",
    "MLP",
    "NLGNN",
    "GATConfig",
    "GCNConfig",
    "GCNSLConfig",
    "GCNSLPlus",
    "GCNSLPlusConfig",
    "GeomGCN",
    "GeomGCNConfig",
    "H2GCNConfig",
    "MLPConfig",
    "MixHop",
    "MixHopConfig",
    "ModelConfig",
    "NLGNNConfig",
    "Precomputed",
    "normalize_features",
    "normalized_adjacency",
    "relative_weights",
    "shift_features",
]
