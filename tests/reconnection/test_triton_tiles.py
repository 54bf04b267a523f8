import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.reconnection.pairs import Regime
from gcnsl.recording import recorded

from .cases import Case, assert_close, make_case
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


@needs_kernels
@pytest.mark.parametrize("m", [None, 37])
@pytest.mark.parametrize("programs", [1, 5, 100])
def test_keys_are_divided_among_programs(m: int | None, programs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from gcnsl.reconnection import triton_backend

    use(Regime.TILED, monkeypatch)
    monkeypatch.setattr(triton_backend, "GRADIENT_TILE", {"BLOCK_N": 16, "BLOCK_M": 16, "num_warps": 4})
    monkeypatch.setattr(triton_backend, "GRADIENT_PROGRAMS", programs)
    case = make_case(50, m, 4, 3, "some", seed=4)
    assert_close(case.run("triton", DEVICE), case.expected())


@needs_kernels
def test_recorded_work_is_done_in_tiles_and_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcnsl.reconnection import triton_backend

    use(Regime.LISTED, monkeypatch)
    monkeypatch.setattr(triton_backend, "_read", lambda *_: pytest.fail("the host has looked"))
    case = make_case(20, None, 4, 3, "some", seed=4)
    with recorded():
        assert_close(case.run("triton", DEVICE), case.expected())
