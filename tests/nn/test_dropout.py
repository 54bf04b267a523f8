import pytest
import torch

from gcnsl.nn.dropout import drop_entries, dropout, scale_of_kept
from gcnsl.sparse import SparseMatrix


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


@pytest.mark.parametrize("rate", [0.3, 0.99999])
def test_in_place_the_same_entries_go(rate) -> None:
    x, results = torch.rand(301, 77), []
    for in_place in (False, True):
        torch.manual_seed(0)
        results.append(dropout(x.clone(), rate, training=True, in_place=in_place))
    torch.testing.assert_close(*results)
    kept = results[0] > 0
    torch.testing.assert_close(results[0][kept], x[kept] * scale_of_kept(x, rate))
