"""The back ends in plain torch: the dense oracle, and tiles."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.reconnection import tiled

from .cases import Case, assert_close, cases, make_case


def test_the_oracle_is_the_formula() -> None:
    case = make_case(n=9, m=None, q=4, p=3, kind="some", seed=0, zero_rows=1, duplicates=2)
    z, h = case.z.double(), case.h.double()
    for i in range(len(z)):
        weights = [s if (s := float(z[i] @ z[j])) >= case.epsilon else 0.0 for j in range(len(z))]
        expected = sum(w * h[j] for j, w in enumerate(weights)) / (sum(weights) or 1.0)
        assert torch.allclose(case.expected()[0][i], torch.as_tensor(expected, dtype=torch.float64).expand(3))


@given(cases(largest=800), st.sampled_from([7, 64, 1024]))
@settings(max_examples=20, deadline=None)
def test_values_and_gradients_in_float64(case: Case, side: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled, "TILE_SIDE", {"cpu": side})
        assert_close(case.run("tiled", dtype=torch.float64), case.expected(), tolerance=1e-11)


@pytest.mark.parametrize("kind", ["diagonal", "few", "some", "all"])
@pytest.mark.parametrize("m", [None, 517])
def test_several_tiles(kind: str, m: int | None, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "TILE_SIDE", {"cpu": 300})
    case = make_case(n=733, m=m, q=19, p=21, kind=kind, seed=5, zero_rows=2, duplicates=3)
    assert_close(case.run(backend), case.expected())


def test_results_do_not_depend_on_reduced_precision_switches() -> None:
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


@pytest.mark.parametrize("m", [None, 350])
def test_finds_the_kept_pairs_in_order(m: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "TILE_SIDE", {"cpu": 64})
    problem = make_case(n=500, m=m, q=7, p=1, kind="few", seed=1, zero_rows=3).problem()
    z, keys, _, threshold, *_ = problem
    assert torch.equal(tiled.find(problem), (z.double() @ keys.double().T >= threshold).nonzero().T)
