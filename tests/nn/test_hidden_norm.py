import pytest
import torch

from gcnsl.nn.hidden_norm import hidden_norm

H = torch.tensor([[1.0, 10.0, 4.0], [3.0, -10.0, 2.0], [2.0, 0.0, 6.0]])


@pytest.mark.parametrize(("kind", "dim"), [("batch", 0), ("layer", 1)])
def test_columns_or_rows_have_mean_0_and_variance_1(kind, dim) -> None:
    normalised = hidden_norm(kind, 3)(H)
    torch.testing.assert_close(normalised.mean(dim), torch.zeros(3))
    torch.testing.assert_close(normalised.var(dim, correction=0), torch.ones(3), rtol=1e-4, atol=1e-4)


def test_none_changes_nothing_and_learns_nothing() -> None:
    norm = hidden_norm("none", 3)
    assert norm(H) is H
    assert list(norm.parameters()) == []
