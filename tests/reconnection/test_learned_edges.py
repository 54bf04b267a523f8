import pytest
import torch
from hypothesis import given, settings
from torch.nn.functional import normalize

from gcnsl.errors import ArgumentError
from gcnsl.reconnection import operator, reconnect, reconnected_edges, tiled
from gcnsl.reconnection.operator import epsilon_for_degree

from .cases import Case, cases, make_case


def expected_edges(case: Case) -> torch.Tensor:
    keys = case.z if case.keys is None else case.keys
    similarity = case.z.double() @ keys.double().T
    return (similarity >= min(case.epsilon, 1 - 1e-6)).nonzero().T


@given(cases(largest=1500))
@settings(max_examples=25, deadline=None)
def test_edges_are_the_kept_pairs_in_order(case: Case) -> None:
    edge_index, weight = reconnected_edges(case.z, case.epsilon, keys=case.keys)
    assert edge_index.dtype == torch.int64
    assert torch.equal(edge_index, expected_edges(case))
    keys = case.z if case.keys is None else case.keys
    exact = (case.z[edge_index[0]].double() * keys[edge_index[1]].double()).sum(1)
    assert torch.allclose(weight.double(), exact, atol=1e-6)


@pytest.mark.parametrize("m", [None, 350])
@pytest.mark.parametrize("name", ["tiled", "dense"])
def test_every_backend_gives_the_same(m: int | None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(n=500, m=m, q=7, p=1, kind="few", seed=1, zero_rows=3, duplicates=3)
    by_numba = reconnected_edges(case.z, case.epsilon, keys=case.keys)
    monkeypatch.setattr(operator, "choose_backend", lambda *_: name)
    monkeypatch.setattr(tiled, "TILE_SIDE", {"cpu": 64})
    by_other = reconnected_edges(case.z, case.epsilon, keys=case.keys)
    assert torch.equal(by_numba[0], by_other[0])
    assert torch.equal(by_numba[1], by_other[1])


def test_more_edges_than_fit_into_memory_are_refused_at_once() -> None:
    z = torch.nn.functional.normalize(torch.ones(100_000, 16), dim=1)
    with pytest.raises(ArgumentError, match=r"epsilon\(0.5\) gives about 1e\+10 edges, which need .* GiB .*: raise it"):
        reconnected_edges(z, 0.5)
    z[1:] = 0
    assert reconnected_edges(z, 0.5)[0].tolist() == [[0], [0]]


@pytest.mark.parametrize("m", [None, 40])
def test_normalized_weights_are_the_operator(m: int | None) -> None:
    case = make_case(n=60, m=m, q=5, p=6, kind="some", seed=1, zero_rows=2)
    leaves, others = case.leaves(torch.float64), case.leaves(torch.float64)
    (row, column), weight = reconnected_edges(
        leaves[0], case.epsilon, keys=None if m is None else leaves[2], normalize=True
    )
    by_edges = leaves[1].new_zeros(60, 6).index_add(0, row, weight[:, None] * leaves[1][column])
    at_once = reconnect(others[0], others[1], case.epsilon, keys=None if m is None else others[2])
    assert torch.allclose(by_edges, at_once)
    for out in (by_edges, at_once):
        out.backward(case.upstream().double())
    assert all(torch.allclose(a.grad, b.grad) for a, b in zip(leaves, others, strict=True))


def rows(n: int, q: int = 8) -> torch.Tensor:
    return normalize(torch.randn(n, q, generator=torch.Generator().manual_seed(n)))


@pytest.mark.parametrize("wanted", [0.5, 3, 20])
def test_with_few_nodes_the_degree_is_exact(wanted) -> None:
    z = rows(100)
    edges, _ = reconnected_edges(z, float(epsilon_for_degree(z, wanted)), loops=False)
    assert edges.shape[1] / 100 == pytest.approx(wanted, abs=0.03)
