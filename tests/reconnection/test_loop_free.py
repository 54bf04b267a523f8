import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gcnsl.errors import ArgumentError
from gcnsl.reconnection import reconnect, reconnected_edges

from .cases import Case, assert_close, cases, make_case


def dense_oracle(z: torch.Tensor, h: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Â* h, one row and one pair at a time."""
    rows = []
    for i in range(len(z)):
        weights = [torch.dot(z[i], z[j]) for j in range(len(z))]
        kept = [j for j in range(len(z)) if j != i and weights[j] >= epsilon]
        total = sum((weights[j] for j in kept), z.new_zeros(()))
        rows.append(sum((weights[j] * h[j] for j in kept), h.new_zeros(h.shape[1])) / (total if kept else 1))
    return torch.stack(rows) + 0 * (z.sum() + h.sum())  # a gradient even if no pair is kept


def run(case: Case, backend: str, dtype: torch.dtype) -> list[torch.Tensor]:
    z, h = case.leaves(dtype)
    out = reconnect(z, h, min(case.epsilon, 1 - 1e-6), loops=False, backend=backend)
    out.backward(case.upstream().to(dtype))
    return [out.detach(), z.grad, h.grad]


def expected(case: Case) -> list[torch.Tensor]:
    z, h = case.leaves(torch.float64)
    out = dense_oracle(z, h, min(case.epsilon, 1 - 1e-6))
    out.backward(case.upstream().double())
    return [out.detach(), z.grad, h.grad]


@given(cases(), st.sampled_from(["tiled", "numba", "dense", "auto"]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_values_and_gradients_agree_with_pairs_counted_one_by_one(case: Case, backend: str) -> None:
    assume(case.keys is None and len(case.z) <= 40)
    assert_close(run(case, backend, torch.float32), expected(case))


@pytest.mark.parametrize("kind", ["diagonal", "few", "some", "all"])
def test_every_back_end_in_both_precisions(backend: str, kind: str) -> None:
    case = make_case(n=37, m=None, q=5, p=4, kind=kind, seed=5, zero_rows=2)
    wanted = expected(case)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-10)):
        for got, want in zip(run(case, backend, dtype), wanted, strict=True):
            torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["few", "all"])
def test_gradcheck(backend: str, kind: str) -> None:
    case = make_case(n=11, m=None, q=4, p=3, kind=kind, seed=3)
    z, h = case.leaves(torch.float64)
    epsilon = min(case.epsilon, 1 - 1e-4)
    torch.autograd.gradcheck(lambda z, h: reconnect(z, h, epsilon, loops=False, backend=backend), (z, h))


def test_a_row_that_is_similar_to_no_other_gets_zero(backend: str) -> None:
    z = torch.eye(3)[[0, 1, 1]].requires_grad_()
    out = reconnect(z, torch.tensor([[5.0], [1.0], [2.0]]), 0.9, loops=False, backend=backend)
    assert out.tolist() == [[0.0], [2.0], [1.0]]
    out.sum().backward()
    assert z.grad is not None
    assert z.grad[0].eq(0).all()


def test_compiled_like_eager() -> None:
    case = make_case(n=300, m=None, q=6, p=5, kind="few", seed=2)
    z, h = case.leaves()
    step = torch.compile(lambda z, h: reconnect(z, h, case.epsilon, loops=False, backend="numba"), backend="aot_eager")
    results = []
    for function in (step, lambda z, h: reconnect(z, h, case.epsilon, loops=False, backend="numba")):
        out = function(z, h)
        results.append([out.detach(), *torch.autograd.grad(out.square().sum(), [z, h])])
    assert_close(results[0], [tensor.double() for tensor in results[1]], tolerance=1e-6)


def test_edges_without_loops_are_the_same_edges() -> None:
    case = make_case(n=50, m=None, q=6, p=5, kind="few", seed=2, zero_rows=3)
    (source, target), weight = reconnected_edges(case.z, case.epsilon)
    kept = source != target
    edges, weights = reconnected_edges(case.z, case.epsilon, loops=False)
    assert edges.equal(torch.stack([source, target])[:, kept])
    assert weights.equal(weight[kept])
    normalized = reconnected_edges(case.z, case.epsilon, loops=False, normalize=True)
    out = torch.zeros(50, 5).index_add(0, edges[0], normalized[1][:, None] * case.h[edges[1]])
    torch.testing.assert_close(out, reconnect(case.z, case.h, case.epsilon, loops=False), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("first", [0, 9, 26])
def test_some_rows_against_all_know_which_key_they_are(backend: str, first: int) -> None:
    case = make_case(n=37, m=None, q=5, p=4, kind="some", seed=5, zero_rows=2)
    rows, results = slice(first, first + 11), []
    for some in (True, False):
        z, h = case.leaves(torch.float64)
        options = {"keys": z, "first_key": first} if some else {}
        out = reconnect(z[rows] if some else z, h, case.epsilon, loops=False, backend=backend, **options)
        own = out if some else out[rows]
        own.backward(case.upstream().double()[rows])
        results.append([own.detach(), z.grad, h.grad])
    assert_close(*results, 1e-9)


def test_a_first_key_beyond_the_keys_is_refused() -> None:
    z, h = torch.eye(5), torch.ones(5, 2)
    with pytest.raises(ArgumentError, match=r"first_key\(3\) must be from 0 to 2: keys has no more rows"):
        reconnect(z[:3], h, 0.5, keys=z, loops=False, first_key=3)
