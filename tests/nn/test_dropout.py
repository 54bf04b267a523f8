from itertools import chain

import pytest
import torch

from gcnsl.nn.dropout import drop_entries, dropout, scale_of_kept
from gcnsl.sharding.node_rows import divided
from gcnsl.sharding.row_shards import shard
from gcnsl.sparse import SparseMatrix

from ..sharding.ranks import in_group

N = 47


def test_dropout_keeps_the_mean_and_the_pattern() -> None:
    torch.manual_seed(0)
    x = torch.ones(100, 100).tril()
    for features in (x, SparseMatrix(x.to_sparse_csr())):
        assert (drop_entries(features, 0.7, training=False) @ torch.eye(100)).equal(x)
        dropped = drop_entries(features, 0.7, training=True) @ torch.eye(100)
        assert dropped.triu(1).eq(0).all()
        torch.testing.assert_close(dropped.unique(), torch.tensor([0, 1 / 0.3]), rtol=1e-4, atol=0)
        assert abs(float(dropped.sum() / x.sum()) - 1) < 0.1


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.6, 0.99999])
@pytest.mark.parametrize("shape", [(1,), (1001,), (301, 77), (0, 3)])
def test_entries_go_at_the_rate_and_the_rest_is_scaled(rate, shape) -> None:
    torch.manual_seed(0)
    x = torch.ones(shape, dtype=torch.double, requires_grad=True)
    dropped = dropout(x, rate, training=True)
    assert dropped.shape == x.shape
    kept = dropped.detach() != 0
    torch.testing.assert_close(
        dropped.detach()[kept], torch.full((int(kept.sum()),), 1 / (1 - rate)).double(), rtol=0.6, atol=0
    )
    spread = (rate * (1 - rate) / max(x.numel(), 1)) ** 0.5
    if x.numel() > 1000:
        assert abs(float(kept.double().mean()) - (1 - rate)) < 5 * spread + 1 / 65536
    dropped.sum().backward()
    assert x.grad.equal(dropped.detach())  # of ones


def test_entries_go_independently() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(400, 400), 0.5, training=True) > 0).double() - 0.5
    for shift in (1, 2, 3, 4, 7, 400):
        neighbours = kept.flatten()[shift:] * kept.flatten()[:-shift]
        assert abs(float(neighbours.mean())) < 5 * 0.25 / 400


def test_follows_torchs_seed() -> None:
    draws = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        draws.append(dropout(torch.ones(100), 0.5, training=True))
    assert draws[0].equal(draws[1])
    assert not draws[0].equal(draws[2])


def test_does_nothing_outside_training_or_at_rate_zero() -> None:
    x = torch.randn(4, 4)
    for features in (x, SparseMatrix(x.to_sparse_csr())):
        assert drop_entries(features, 0.5, training=False) is features
        assert drop_entries(features, 0.0, training=True) is features


def drop_own_rows(rate: float) -> list[list[list[float]]]:
    """What is left of ones, dense and sparse, in the rows of a process."""
    with divided(N) as rows:
        parts = shard([torch.ones(N, 3), SparseMatrix(torch.ones(N, 5).to_sparse_csr())], rows, node_columns=())
        torch.manual_seed(0)
        dense, sparse = (drop_entries(part, rate, training=True) for part in parts)
        return [dense.tolist(), sparse.to_dense().tolist()]


def test_what_is_dropped_does_not_depend_on_the_number_of_processes() -> None:
    alone, *groups = (
        [[*chain(*parts)] for parts in zip(*in_group(size, drop_own_rows, 0.5), strict=True)] for size in (1, 2, 3)
    )
    assert groups == [alone, alone]
    for rows in alone:
        values = torch.tensor(rows)
        assert values.unique().tolist() == [0, 2]
        assert 0.7 < values.mean() < 1.3
        assert len(values.unique(dim=0)) > 2, "rows are not dropped alike"


@pytest.mark.parametrize("rate", [0.3, 0.99999])
def test_in_place_the_same_entries_go(rate) -> None:
    x, results = torch.rand(301, 77), []
    for in_place in (False, True):
        torch.manual_seed(0)
        results.append(dropout(x.clone(), rate, training=True, in_place=in_place))
    torch.testing.assert_close(*results)
    kept = results[0] > 0
    torch.testing.assert_close(results[0][kept], x[kept] * scale_of_kept(x, rate))
