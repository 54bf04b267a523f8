import torch

from gcnsl.nn import SparseMatrix
from gcnsl.nn.linear import FeatureLinear, drop_entries


def test_sparse_features_map_like_dense_ones() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 5).relu()
    for bias in (True, False):
        lin = FeatureLinear(5, 3, bias=bias)
        if bias:
            torch.nn.init.normal_(lin.bias)
        torch.testing.assert_close(lin(SparseMatrix(x.to_sparse_csr())), lin(x))


def test_dropout_keeps_the_mean_and_the_pattern() -> None:
    torch.manual_seed(0)
    x = torch.ones(100, 100).tril()
    for features in (x, SparseMatrix(x.to_sparse_csr())):
        assert (drop_entries(features, 0.7, training=False) @ torch.eye(100)).equal(x)
        dropped = drop_entries(features, 0.7, training=True) @ torch.eye(100)
        assert dropped.triu(1).eq(0).all()
        torch.testing.assert_close(dropped.unique(), torch.tensor([0, 1 / 0.3]))
        assert abs(float(dropped.sum() / x.sum()) - 1) < 0.1
