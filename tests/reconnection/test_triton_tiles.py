import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.reconnection.pairs import Regime

from .cases import Case, assert_close
from .gpu import DEVICE, LARGE, needs_kernels, odd_cases, use


@needs_kernels
@given(odd_cases, st.sampled_from([0, 4096**2]))
@settings(max_examples=30 if LARGE else 8, deadline=None)
def test_tiles_give_the_values_and_gradients_of_the_oracle(case: Case, fused_pairs: int) -> None:
    from gcnsl.reconnection import triton_backend

    with pytest.MonkeyPatch.context() as patch:
        use(Regime.TILED, patch)
        patch.setattr(triton_backend, "FUSED_PAIRS", fused_pairs)
        assert_close(case.run("triton", DEVICE), case.expected())
