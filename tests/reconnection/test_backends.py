import inspect
import subprocess
import sys
from typing import get_args

import pytest
import torch
from torch.nn.functional import normalize

from gcnsl.errors import ArgumentError
from gcnsl.reconnection import backends, dense, numba_backend, reconnect, tiled
from gcnsl.reconnection.backends import BACKENDS, BackendName, choose_backend


def moved(n: int, device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Something that passes for a matrix on a device which this machine need not have."""
    return type("Moved", (), {"device": torch.device(device), "dtype": dtype, "shape": (n, 16)})()


def test_the_choice_of_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def choice(n: int, device: str, dtype: torch.dtype = torch.float32, width: int = 64) -> str:
        z = moved(n, device, dtype)
        return choose_backend(z, z, width)

    monkeypatch.setattr(backends, "HAS_TRITON", True)
    assert choice(200, "cpu") == "dense"
    assert choice(2708, "cpu") == choice(2708, "cpu", torch.float64) == "numba"
    assert choice(200, "cuda") == choice(9999, "cuda") == choice(9999, "cuda", torch.bfloat16) == "triton"
    assert choice(9999, "cuda", torch.float64) == choice(9999, "cuda", width=300) == choice(9999, "mps") == "tiled"
    monkeypatch.setattr(backends, "HAS_TRITON", False)
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
    monkeypatch.setattr(backends, "HAS_TRITON", False)
    with pytest.raises(ArgumentError, match=r"backend\('triton'\) needs .* the package triton"):
        choose_backend(moved(300, "cuda"), moved(300, "cuda"), 4, "triton")


def test_the_table_has_every_name() -> None:
    assert set(get_args(BackendName)) == {"auto", *BACKENDS}


def test_every_backend_has_the_same_signatures() -> None:
    modules = [tiled, numba_backend]
    if backends.HAS_TRITON:
        from gcnsl.reconnection import triton_backend

        modules.append(triton_backend)
    for name in ("forward", "backward", "find"):
        assert len({inspect.signature(getattr(module, name)) for module in modules}) == 1
    assert inspect.signature(dense.forward) == inspect.signature(tiled.forward)


def test_numba_and_triton_are_imported_on_first_use() -> None:
    code = "import sys, gcnsl.reconnection; sys.exit('numba' in sys.modules or 'triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
