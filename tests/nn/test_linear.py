import torch

from gcnsl.nn.linear import FeatureLinear
from gcnsl.sparse import SparseMatrix


def test_sparse_features_map_like_dense_ones() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 5).relu()
    for bias in (True, False):
        lin = FeatureLinear(5, 3, bias=bias)
        if bias:
            torch.nn.init.normal_(lin.bias)
        torch.testing.assert_close(lin(SparseMatrix(x.to_sparse_csr())), lin(x))
