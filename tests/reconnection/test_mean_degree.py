import pytest
import torch
from torch.nn.functional import normalize

from gcnsl import InputError
from gcnsl.reconnection import reconnected_edges
from gcnsl.reconnection.mean_degree import LEAST_EPSILON, epsilon_for_degree


def rows(n: int, q: int = 8) -> torch.Tensor:
    return normalize(torch.randn(n, q, generator=torch.Generator().manual_seed(n)))


@pytest.mark.parametrize("wanted", [0.5, 3, 20])
def test_with_few_nodes_the_degree_is_exact(wanted) -> None:
    z = rows(100)
    edges, _ = reconnected_edges(z, float(epsilon_for_degree(z, wanted)), loops=False)
    assert edges.shape[1] / 100 == pytest.approx(wanted, abs=0.03)


@pytest.mark.parametrize("n", [1000, 20_000])
def test_with_many_nodes_the_degree_is_close(n) -> None:
    torch.manual_seed(0)
    z = rows(n)
    edges, _ = reconnected_edges(z, float(epsilon_for_degree(z, 20)), loops=False)
    assert 14 < edges.shape[1] / n < 28


def test_equal_rows_stay_together_and_opposite_rows_apart() -> None:
    z = torch.eye(2).repeat_interleave(10, dim=0)
    assert float(epsilon_for_degree(z, 3)) == 1
    z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    assert float(epsilon_for_degree(z, 2)) == pytest.approx(LEAST_EPSILON)
    with pytest.raises(InputError, match=r"mean_degree\(0\)"):
        epsilon_for_degree(z, 0)
