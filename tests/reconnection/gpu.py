"""What the tests of the GPU's kernels share: they run on a GPU if there is one, else under Triton's interpreter."""

import os

import pytest
import torch
from hypothesis import strategies as st

from gcnsl.reconnection import pairs
from gcnsl.reconnection.pairs import Regime

from .cases import Case, cases, make_case

pytest.importorskip("triton", reason="triton is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
LARGE = DEVICE == "cuda"
RUNS_KERNELS = INTERPRETED or LARGE
needs_kernels = pytest.mark.skipif(not RUNS_KERNELS, reason="runs in the interpreter's own process")

sizes = st.integers(1, 24)
kinds = st.sampled_from(["few", "some", "all"])
small_cases = st.builds(make_case, sizes, st.none() | sizes, sizes, sizes, kinds, st.integers(0, 99))
odd_cases = cases() if LARGE else small_cases.filter(lambda case: case.clearance() > 4e-6)
"""Cases of odd shapes; few rows under the interpreter, which takes a millisecond per entry."""


def run(case: Case) -> tuple[Regime, list[torch.Tensor]]:
    """The regime of a case; its output and gradients."""
    z, h, *keys = (tensor.detach() for tensor in case.leaves(device=DEVICE))
    found = torch.ops.gcnsl.reconnect(
        z, keys[0] if keys else None, h, min(case.epsilon, 1 - 1e-6), 1e-4, None, True, "triton"
    )
    return Regime(int(found[4])), case.run("triton", DEVICE)


def use(regime: Regime, patch: pytest.MonkeyPatch) -> None:
    """Make room for lists, or none, and take no graph for small."""
    from gcnsl.reconnection import triton_backend

    patch.setattr(pairs, "PAIRS_PER_ROW", dict.fromkeys(pairs.PAIRS_PER_ROW, 0 if regime == Regime.TILED else 300))
    patch.setattr(triton_backend, "FUSED_PAIRS", 0)
