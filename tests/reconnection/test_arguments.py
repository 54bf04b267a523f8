"""What is refused and how, and the choice of a back end."""

import math
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.nn.functional import normalize

from gcnsl.errors import ArgumentError, InputError
from gcnsl.reconnection import operator, reconnect, reconnected_edges
from gcnsl.reconnection.operator import choose_backend


def rows(n: int = 300, q: int = 4) -> torch.Tensor:
    return normalize(torch.randn(n, q, generator=torch.Generator().manual_seed(0)), dim=1)


@pytest.mark.parametrize("epsilon", [-0.1, 1.0001, math.nan, math.inf])
def test_epsilon_outside_its_range(epsilon: float) -> None:
    message = rf"epsilon\({epsilon}\) must be (finite and )?>= 0 and <= 1"
    with pytest.raises(ArgumentError, match=message):
        reconnect(rows(), torch.ones(300, 2), epsilon)
    with pytest.raises(ArgumentError, match=message):
        reconnected_edges(rows(), epsilon)


def test_an_epsilon_of_zero_averages_over_all_positive_similarities(backend: str) -> None:
    z, h = rows(), torch.arange(600.0).view(300, 2)
    z[3] = 0
    similarity = (z @ z.T).relu()
    expected = similarity @ h / similarity.sum(dim=1, keepdim=True).clamp(min=1e-30)
    assert torch.allclose(reconnect(z, h, 0, backend=backend), expected, rtol=1e-4)


def test_rows_that_are_not_unit(backend: str) -> None:
    z = rows()
    z[17] *= 1.3
    with pytest.raises(InputError, match=r"z\[17\] has norm 1.3: .*normalize\(z\)"):
        reconnect(z, torch.ones(300, 2), 0.5, backend=backend)
    with pytest.raises(InputError, match=r"keys\[17\] has norm 1.3"):
        reconnect(rows(), torch.ones(300, 2), 0.5, keys=z, backend=backend)
    with pytest.raises(InputError, match=r"z\[17\] has norm 1.3"):
        reconnected_edges(z, 0.5)
    with pytest.raises(InputError, match=r"keys\[17\] has norm 1.3"):
        reconnected_edges(rows(), 0.5, keys=z)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite(backend: str, value: float) -> None:
    z, h = rows(), torch.ones(300, 2)
    z[5, 1], h[9, 1] = value, value
    with pytest.raises(InputError, match=rf"z\[5, 1\] is {value}"):
        reconnect(z, torch.ones(300, 2), 0.5, backend=backend)
    with pytest.raises(InputError, match=rf"h\[9, 1\] is {value}"):
        reconnect(rows(), h, 0.5, backend=backend)


def test_large_finite_values_pass(backend: str) -> None:
    h = torch.full((300, 2), 3e38)
    assert reconnect(rows(), h, 1.0, backend=backend).isfinite().all()


@pytest.mark.parametrize(
    ("z", "h", "keys", "message"),
    [
        (rows(), torch.ones(299, 2), None, "h has 299 rows and z has 300"),
        (rows(), torch.ones(300, 2), rows(20), "h has 300 rows and keys has 20"),
        (rows(), torch.ones(20, 2), rows(20, 5), "keys has 5 columns and z has 4"),
        (rows()[0], torch.ones(300, 2), None, r"z has shape \(4,\)"),
        (rows(), torch.ones(300), None, r"h has shape \(300,\)"),
        (rows(), torch.ones(300, 0), None, r"h has shape \(300, 0\)"),
        (rows()[:0], torch.ones(0, 2), None, r"z has shape \(0, 4\)"),
        (rows(), torch.ones(300, 2).double(), None, "h has dtype torch.float64 and z has torch.float32"),
        (rows(), torch.ones(300, 2).long(), None, r"h has dtype torch.int64: .* h.float\(\)"),
        (rows(), torch.ones(300, 2, device="meta"), None, "h is on meta and z on cpu"),
        (rows().numpy(), torch.ones(300, 2), None, r"z\(ndarray\) must be a torch.Tensor"),
        (rows(), torch.ones(300, 2), rows().numpy(), r"keys\(ndarray\) must be a torch.Tensor"),
    ],
)
def test_shapes_types_and_devices(z: Any, h: torch.Tensor, keys: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reconnect(z, h, 0.5, keys=keys)


def moved(n: int, device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Something that passes for a matrix on a device which this machine need not have."""
    return type("Moved", (), {"device": torch.device(device), "dtype": dtype, "shape": (n, 16)})()


def test_the_choice_of_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def choice(n: int, device: str, dtype: torch.dtype = torch.float32, width: int = 64) -> str:
        z = moved(n, device, dtype)
        return choose_backend(z, z, width)

    monkeypatch.setattr(operator, "HAS_TRITON", True)
    assert choice(200, "cpu") == "dense"
    assert choice(2708, "cpu") == choice(2708, "cpu", torch.float64) == "numba"
    assert choice(200, "cuda") == choice(9999, "cuda") == choice(9999, "cuda", torch.bfloat16) == "triton"
    assert choice(9999, "cuda", torch.float64) == choice(9999, "cuda", width=300) == choice(9999, "mps") == "tiled"
    monkeypatch.setattr(operator, "HAS_TRITON", False)
    assert choice(9999, "cpu") == "numba"
    assert choice(9999, "cuda") == "tiled"


def test_backends_that_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    z = normalize(torch.randn(300, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    with pytest.raises(ArgumentError, match=r"backend\('cuda'\) must be one of auto, dense, tiled, numba, triton"):
        reconnect(z, torch.ones(300, 2), 0.5, backend="cuda")  # type: ignore[arg-type]
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ArgumentError, match=r"backend\('triton'\) needs a GPU \(z is on cpu\)"):
        reconnect(z, torch.ones(300, 2), 0.5, backend="triton")
    for device, name in (("cuda", "numba"), ("mps", "numba"), ("mps", "triton")):
        with pytest.raises(ArgumentError, match=rf"backend\('{name}'\) needs .*\(z is on {device}\)"):
            choose_backend(moved(300, device), moved(300, device), 4, name)
    monkeypatch.setattr(operator, "HAS_TRITON", False)
    with pytest.raises(ArgumentError, match=r"backend\('triton'\) needs .* the package triton"):
        choose_backend(moved(300, "cuda"), moved(300, "cuda"), 4, "triton")


def test_numba_and_triton_are_imported_on_first_use() -> None:
    code = "import sys, gcnsl.reconnection; sys.exit('numba' in sys.modules or 'triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
