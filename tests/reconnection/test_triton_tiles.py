import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl.reconnection import pairs
from gcnsl.reconnection.pairs import Regime

from .cases import Case, assert_close, make_case
from .gpu import DEVICE, LARGE, needs_kernels, odd_cases, run, use


@needs_kernels
@given(odd_cases, st.sampled_from([Regime.TILED, Regime.SLOTTED]))
@settings(max_examples=30 if LARGE else 8, deadline=None)
def test_tiles_give_the_values_and_gradients_of_the_oracle(case: Case, regime: Regime) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(regime, patch)
        assert_close(case.run("triton", DEVICE), case.expected())


@needs_kernels
def test_slots_that_do_not_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    use(Regime.SLOTTED, monkeypatch)
    case = make_case(2000 if LARGE else 30, None, 16, 3, "some", seed=4)
    most = int((case.z @ case.z.T >= case.epsilon).sum(dim=1).max())
    for slots, regime in ((most - 1, Regime.TILED), (most + 1, Regime.SLOTTED)):
        monkeypatch.setattr(pairs, "PAIRS_PER_ROW", dict.fromkeys(pairs.PAIRS_PER_ROW, slots))
        ran_in, results = run(case)
        assert ran_in == regime
        assert_close(results, case.expected())
