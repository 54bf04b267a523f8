import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reconnection_cases import Case, assert_close, cases, make_case
from torch.nn.functional import normalize

from gcnsl.reconnection import dense, reconnect, tiled

EVERY_KIND = ["diagonal", "few", "some", "all"]


def test_the_oracle_is_the_formula() -> None:
    case = make_case(n=9, m=None, q=4, p=3, kind="some", seed=0, zero_rows=1, duplicates=2)
    z, h = case.z.double(), case.h.double()
    for i in range(len(z)):
        weights = [s if (s := float(z[i] @ z[j])) >= case.epsilon else 0.0 for j in range(len(z))]
        expected = sum(w * h[j] for j, w in enumerate(weights)) / (sum(weights) or 1.0)
        assert torch.allclose(case.expected()[0][i], torch.as_tensor(expected, dtype=torch.float64).expand(3))


@given(cases(), st.sampled_from(["tiled", "numba", "dense", "auto"]))
@settings(max_examples=35, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_values_and_gradients_agree_with_the_oracle(case: Case, backend: str) -> None:
    assert_close(case.run(backend), case.expected())


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("m", [None, 517])
def test_several_tiles(kind: str, m: int | None, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "TILE_SIDE", {"cpu": 300})
    case = make_case(n=733, m=m, q=19, p=21, kind=kind, seed=5, zero_rows=2, duplicates=3)
    assert_close(case.run(backend), case.expected())


@pytest.mark.parametrize("m", [None, 11])
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_gradcheck(backend: str, m: int | None, kind: str) -> None:
    case = make_case(n=13, m=m, q=5, p=4, kind=kind, seed=3, zero_rows=1)
    z, h, *keys = case.leaves(torch.float64)
    epsilon = min(case.epsilon, 1 - 1e-4)  # the finite difference must not carry the diagonal across the threshold

    def operator(z: torch.Tensor, h: torch.Tensor, *keys: torch.Tensor) -> torch.Tensor:
        return reconnect(z, h, epsilon, keys=keys[0] if keys else None, backend=backend)

    rows_that_stay = (case.z.abs().sum(1, keepdim=True) > 0).double()
    key_rows_that_stay = [(k.detach().abs().sum(1, keepdim=True) > 0).double() for k in keys]
    torch.autograd.gradcheck(
        lambda z, h, *k: operator(z * rows_that_stay, h, *(a * b for a, b in zip(k, key_rows_that_stay, strict=True))),
        (z, h, *keys),
    )


@pytest.mark.parametrize("m", [None, 30])
@pytest.mark.parametrize("name", ["tiled", "numba"])
@pytest.mark.parametrize("kind", ["few", "all"])
def test_opcheck(m: int | None, name: str, kind: str) -> None:
    z, h, *keys = make_case(n=40, m=m, q=6, p=5, kind=kind, seed=2).leaves()
    arguments = (z, keys[0] if keys else None, h, 0.7, 1e-4, name)
    torch.library.opcheck(torch.ops.gcnsl.reconnect, arguments)


@pytest.mark.parametrize("m", [None, 310])
def test_compiles_into_one_graph(m: int | None, backend: str) -> None:
    case = make_case(n=300, m=m, q=6, p=5, kind="few", seed=2)
    z, h, *keys = case.leaves()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(z: torch.Tensor, h: torch.Tensor, keys: torch.Tensor | None) -> torch.Tensor:
        return reconnect(normalize(z * 2), h, case.epsilon, keys=keys, backend=backend).relu()

    def eager(z: torch.Tensor, h: torch.Tensor, keys: torch.Tensor | None) -> torch.Tensor:
        return reconnect(normalize(z * 2), h, case.epsilon, keys=keys, backend=backend).relu()

    results = []
    for function in (step, eager):
        out = function(z, h, keys[0] if keys else None)
        results.append([out.detach(), *torch.autograd.grad(out.square().sum(), [z, h, *keys])])
    assert_close(results[0], [tensor.double() for tensor in results[1]], tolerance=1e-6)


def test_no_grad_keeps_nothing(backend: str) -> None:
    case = make_case(n=50, m=None, q=6, p=5, kind="few", seed=2)
    z, h = case.leaves()
    with torch.no_grad():
        out = reconnect(z, h, case.epsilon, backend=backend)
    assert out.grad_fn is None
    assert_close([out], case.expected()[:1])


def test_gradient_of_one_input_alone(backend: str) -> None:
    case = make_case(n=50, m=20, q=6, p=5, kind="few", seed=2)
    for wanted in range(3):
        leaves = case.leaves()
        for number, leaf in enumerate(leaves):
            leaf.requires_grad_(number == wanted)
        reconnect(leaves[0], leaves[1], case.epsilon, keys=leaves[2], backend=backend).backward(case.upstream())
        assert_close([leaves[wanted].grad], [case.expected()[1 + wanted]])


def test_keys_may_be_z_itself(backend: str) -> None:
    case = make_case(n=300, m=None, q=6, p=5, kind="few", seed=2)
    z, h = case.leaves()
    out = reconnect(z, h, case.epsilon, keys=z, backend=backend)
    out.backward(case.upstream())
    assert_close([out, z.grad, h.grad], case.expected())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(backend: str, dtype: torch.dtype) -> None:
    case = make_case(n=60, m=None, q=6, p=5, kind="few", seed=2)
    z, h = case.leaves(dtype)
    out = reconnect(z, h, 0.75, backend=backend)
    out.backward(case.upstream().to(dtype))
    assert out.dtype == z.grad.dtype == h.grad.dtype == dtype
    rounded = Case(z.detach().float(), h.detach().float(), 0.75, None)
    assert_close([out, z.grad, h.grad], rounded.expected(), tolerance=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_row_is_connected_to_itself_and_its_duplicates_at_epsilon_1(backend: str, dtype: torch.dtype) -> None:
    z = normalize(torch.randn(40, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).to(dtype)
    z[7] = z[3]
    h = torch.arange(40, dtype=dtype)[:, None]
    out = reconnect(z, h, 1.0, backend=backend)[:, 0]
    expected = h[:, 0].clone()
    expected[[3, 7]] = 5
    assert torch.allclose(out, expected)


def test_ties_are_kept(backend: str) -> None:
    z = torch.tensor([[1.0, 0.0, 0.0], [0.5, math.sqrt(0.75), 0.0], [0.0, 0.0, 1.0]])
    h = torch.tensor([[1.0], [4.0], [7.0]])
    assert float(z[0] @ z[1]) == 0.5
    tied = reconnect(z, h, 0.5, backend=backend)
    assert torch.allclose(tied, torch.tensor([[(1 + 0.5 * 4) / 1.5], [(4 + 0.5) / 1.5], [7.0]]))
    just_above = reconnect(z, h, 0.5000001, backend=backend)
    assert torch.allclose(just_above, h)


def test_zero_rows_give_and_get_nothing(backend: str) -> None:
    case = make_case(n=300, m=None, q=6, p=5, kind="all", seed=2, zero_rows=5)
    zero = case.z.abs().sum(1) == 0
    assert zero.any()
    out, grad_z, grad_h = case.run(backend)
    assert not out[zero].any()
    assert not grad_z[zero].any()
    assert not grad_h[zero].any()


def test_queries_near_no_key_get_zero(backend: str) -> None:
    z, keys = torch.eye(4)[:2].requires_grad_(), torch.eye(4)[1:]
    out = reconnect(z, torch.ones(3, 2), 0.5, keys=keys, backend=backend)
    assert out.tolist() == [[0, 0], [1, 1]]
    out.sum().backward()
    assert not z.grad[0].any()


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_threshold_decisions_agree_with_float64(kind: str, backend: str) -> None:
    """With h the unit matrix the output is Â*: which entries are there tells which pairs were kept."""
    generator = torch.Generator().manual_seed(0)
    for q in (3, 16, 64):
        z = normalize(torch.randn(400, q, generator=generator), dim=1)
        exact = z.double() @ z.double().T
        epsilon = {"diagonal": 1.0, "few": 0.6, "some": 0.2, "all": 0.01}[kind]
        kept = reconnect(z, torch.eye(400), epsilon, backend=backend) > 0
        unlike = kept != (exact >= epsilon)
        assert bool(((exact - epsilon).abs()[unlike] <= 1e-6).all())


def test_results_do_not_depend_on_reduced_precision_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(n=300, m=None, q=16, p=5, kind="some", seed=2)
    plain = case.run("tiled")
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        reduced = case.run("tiled")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert all(torch.equal(a, b) for a, b in zip(plain, reduced, strict=True))


def test_equals_the_dense_function_under_autograd() -> None:
    case = make_case(n=80, m=None, q=8, p=5, kind="few", seed=4)
    z, h = case.leaves()
    assert torch.equal(reconnect(z, h, case.epsilon, backend="dense"), dense.reconnect(z, z, h, case.epsilon))
