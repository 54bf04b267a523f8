"""Models, one a file. They know tensors, nothing of files or datasets."""

from gcnsl.nn.config import Input, ModelConfig
from gcnsl.nn.gcn_sl import GCNSL, GCNSLConfig
from gcnsl.nn.preprocessing import feature_matrix, normalize_features, normalized_adjacency, shift_features
from gcnsl.nn.sparse import SparseMatrix

__all__ = [
    "GCNSL",
    "GCNSLConfig",
    "Input",
    "ModelConfig",
    "SparseMatrix",
    "feature_matrix",
    "normalize_features",
    "normalized_adjacency",
    "shift_features",
]
