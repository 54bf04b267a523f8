"""The back ends in plain torch: the dense oracle, and tiles."""

import pytest
import torch

from gcnsl.reconnection import tiled

from .cases import assert_close, make_case


def test_the_oracle_is_the_formula() -> None:
    case = make_case(n=9, m=None, q=4, p=3, kind="some", seed=0, zero_rows=1, duplicates=2)
    z, h = case.z.double(), case.h.double()
    for i in range(len(z)):
        weights = [s if (s := float(z[i] @ z[j])) >= case.epsilon else 0.0 for j in range(len(z))]
        expected = sum(w * h[j] for j, w in enumerate(weights)) / (sum(weights) or 1.0)
        assert torch.allclose(case.expected()[0][i], torch.as_tensor(expected, dtype=torch.float64).expand(3))


@pytest.mark.parametrize("kind", ["diagonal", "few", "some", "all"])
@pytest.mark.parametrize("m", [None, 517])
def test_several_tiles(kind: str, m: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "TILE_SIDE", {"cpu": 300})
    case = make_case(n=733, m=m, q=19, p=21, kind=kind, seed=5, zero_rows=2, duplicates=3)
    assert_close(case.run("tiled"), case.expected())


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
