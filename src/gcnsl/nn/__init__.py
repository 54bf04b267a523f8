"""Models, one a file. They know tensors, nothing of files or datasets."""

from gcnsl.nn.gcn_sl import GCNSL
from gcnsl.nn.preprocessing import normalize_features, normalized_adjacency, shift_features
from gcnsl.nn.sparse import SparseMatrix

__all__ = ["GCNSL", "SparseMatrix", "normalize_features", "normalized_adjacency", "shift_features"]
