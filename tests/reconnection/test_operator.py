import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.errors import InputError
from gcnsl.execution import recorded
from gcnsl.reconnection import reconnect

from .cases import Case, assert_close, cases, make_case


@given(cases(), st.sampled_from(["tiled", "numba", "dense", "auto"]))
@settings(max_examples=35, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_values_and_gradients_agree_with_the_oracle(case: Case, backend: str) -> None:
    assert_close(case.run(backend), case.expected())


@pytest.mark.parametrize(("m", "kind"), [(None, "few"), (None, "diagonal"), (11, "some")])
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


@pytest.mark.parametrize("kind", ["diagonal", "some"])
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


def test_second_derivatives_are_refused() -> None:
    z, h = make_case(n=300, m=None, q=6, p=5, kind="few", seed=2).leaves()
    out = reconnect(z, h, 0.7, backend="numba")
    (grad,) = torch.autograd.grad(out.square().sum(), z, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        grad.sum().backward()


@pytest.mark.parametrize("backend", ["dense", "tiled"])
def test_in_recorded_work_what_is_not_finite_shows_in_the_result(backend) -> None:
    z = torch.nn.functional.normalize(torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    h = torch.ones(9, 2)
    with recorded():
        assert reconnect(z, h, 0.5, backend=backend).isfinite().all()
        z[4, 1] = torch.nan
        assert reconnect(z, h, 0.5, backend=backend).isnan().all()
    with pytest.raises(InputError, match="nan"):
        reconnect(z, h, 0.5, backend=backend)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_compiled_code_may_call_it() -> None:
    case = make_case(n=300, m=None, q=6, p=5, kind="few", seed=2)
    z, h = case.leaves()
    compiled = torch.compile(lambda z, h: reconnect(z, h, case.epsilon, backend="numba"), backend="aot_eager")
    out = compiled(z, h)
    out.backward(case.upstream())
    assert_close([out, z.grad, h.grad], case.expected())
