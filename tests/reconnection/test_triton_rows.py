import pytest
from hypothesis import given, settings

from gcnsl.reconnection.pairs import Regime

from .cases import Case, assert_close
from .gpu import DEVICE, LARGE, needs_kernels, odd_cases, use


@needs_kernels
@given(odd_cases)
@settings(max_examples=30 if LARGE else 8, deadline=None)
def test_listed_pairs_give_the_values_and_gradients_of_the_oracle(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(Regime.LISTED, patch)
        assert_close(case.run("triton", DEVICE), case.expected())
