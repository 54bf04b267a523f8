"""Models, one per file. They work on tensors and know nothing about files or datasets."""

from gcnsl.nn.acm_gcn import ACMGCN, ACMGCNConfig
from gcnsl.nn.config import ModelConfig, Precomputed
from gcnsl.nn.dir_gcn import DirGCN, DirGCNConfig
from gcnsl.nn.fsgnn import FSGNN, FSGNNConfig
from gcnsl.nn.gat import GAT, GATConfig
from gcnsl.nn.gcn import GCN, GCNConfig
from gcnsl.nn.gcn_sl import GCNSL, GCNSLConfig
from gcnsl.nn.gcn_sl_plus import GCNSLPlus, GCNSLPlusConfig
from gcnsl.nn.geom_gcn import GeomGCN, GeomGCNConfig
from gcnsl.nn.gpr_gnn import GPRGNN, GPRGNNConfig
from gcnsl.nn.h2gcn import H2GCN, H2GCNConfig
from gcnsl.nn.linkx import LINKX, LINKXConfig
from gcnsl.nn.mixhop import MixHop, MixHopConfig
from gcnsl.nn.mlp import MLP, MLPConfig
from gcnsl.nn.nlgnn import NLGNN, NLGNNConfig
from gcnsl.nn.preprocessing import normalize_features, normalized_adjacency, relative_weights, shift_features
from gcnsl.nn.sage import SAGE, SAGEConfig

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
    "ACMGCNConfig",
    "DirGCN",
    "DirGCNConfig",
    "FSGNNConfig",
    "GATConfig",
    "GCNConfig",
    "GCNSLConfig",
    "GCNSLPlus",
    "GCNSLPlusConfig",
    "GPRGNNConfig",
    "GeomGCN",
    "GeomGCNConfig",
    "H2GCNConfig",
    "LINKXConfig",
    "MLPConfig",
    "MixHop",
    "MixHopConfig",
    "ModelConfig",
    "NLGNNConfig",
    "Precomputed",
    "SAGEConfig",
    "normalize_features",
    "normalized_adjacency",
    "relative_weights",
    "shift_features",
]
