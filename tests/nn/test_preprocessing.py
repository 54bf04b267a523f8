import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.nn import normalize_features, normalized_adjacency, shift_features

X = torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1.0, 1.0]])


def test_feature_norms() -> None:
    assert normalize_features(X).equal(X)
    assert torch.allclose(normalize_features(X, "row"), torch.tensor([[3 / 7, 4 / 7], [0, 0], [-0.5, 0.5]]))
    assert torch.allclose(normalize_features(X, "l2"), torch.tensor([[0.6, 0.8], [0, 0], [-(0.5**0.5), 0.5**0.5]]))
    with pytest.raises(InputError, match=r"norm\('max'\) must be one of none, row, l2"):
        normalize_features(X, "max")


def test_shift_is_one_column_drawn_from_the_seed() -> None:
    columns = set()
    for seed in range(10):
        change = shift_features(X, seed=seed) - X
        (column,) = change[0].nonzero()
        columns.add(int(column))
        assert change[:, column].flatten().tolist() == [0.5] * 3
        assert change.sum() == 1.5
        assert shift_features(X, seed=seed).equal(shift_features(X, seed=seed))
    assert columns == {0, 1}
    with pytest.raises(InputError, match=r"amount\(-1\) must be >= 0"):
        shift_features(X, -1)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("norm", ["symmetric", "row"])
def test_adjacency_is_the_formula(self_loops, norm) -> None:
    data = synthetic(n=30, h=0.5, classes=3, degree=4, features=12, seed=3)
    edges = torch.cat([data.edge_index, torch.tensor([[5], [5]])], dim=1)  # a loop of its own
    A = torch.zeros(30, 30)
    A[edges[0], edges[1]] = 1
    A.fill_diagonal_(1.0 if self_loops else 0.0)
    d = A.sum(1)
    root = torch.where(d > 0, d.rsqrt(), 0)
    expected = root[:, None] * A * root if norm == "symmetric" else torch.where(d > 0, 1 / d, 0)[:, None] * A
    actual = normalized_adjacency(edges, 30, self_loops=self_loops, norm=norm) @ torch.eye(30)
    assert torch.allclose(actual, expected)


def test_bad_norm() -> None:
    with pytest.raises(InputError, match="must be one of symmetric, row"):
        normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 3, norm="column")


@pytest.mark.parametrize("norm", ["none", "row", "l2"])
def test_sparse_features_are_treated_like_dense_ones(norm) -> None:
    dense = torch.randn(13, 7, generator=torch.Generator().manual_seed(0)).relu()
    dense[4] = 0
    sparse = shift_features(normalize_features(dense.to_sparse_csr(), norm), seed=3)
    assert sparse.layout == torch.sparse_csr
    torch.testing.assert_close(sparse.to_dense(), shift_features(normalize_features(dense, norm), seed=3))
