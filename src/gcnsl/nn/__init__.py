"""Models, one per file. They work on tensors and know nothing about files or datasets."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.nn.acm_gcn import ACMGCN
    from gcnsl.nn.dir_gcn import DirGCN
    from gcnsl.nn.fsgnn import FSGNN
    from gcnsl.nn.gat import GAT
    from gcnsl.nn.gcn import GCN
    from gcnsl.nn.gcn_sl import GCNSL
    from gcnsl.nn.gcn_sl_plus import GCNSLPlus
    from gcnsl.nn.geom_gcn import GeomGCN
    from gcnsl.nn.gpr_gnn import GPRGNN
    from gcnsl.nn.h2gcn import H2GCN
    from gcnsl.nn.linkx import LINKX
    from gcnsl.nn.mixhop import MixHop
    from gcnsl.nn.mlp import MLP
    from gcnsl.nn.nlgnn import NLGNN
    from gcnsl.nn.preprocessing import normalize_features, normalized_adjacency, relative_weights, shift_features
    from gcnsl.nn.reconnect_conv import ReconnectConv
    from gcnsl.nn.sage import SAGE
else:
    __getattr__, __dir__ = lazy(__name__)

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
