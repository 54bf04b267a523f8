import pytest
from experiment_cases import result, spec

from gcnsl.experiments.matching import by_key
from gcnsl.experiments.spec import as_options
from gcnsl.methods import METHODS


def test_a_run_of_before_there_was_an_option_is_one_with_its_default() -> None:
    old, new = spec(options=as_options({"lr": 0.02})), spec(options=as_options(METHODS["gcn-sl-cc"].options()))
    assert old.key != new.key
    assert list(by_key([result(of=old)])) == [new.key]


@pytest.mark.parametrize("order", [1, -1])
def test_a_failure_never_hides_a_good_result_of_the_same_run(order) -> None:
    old, new = spec(options=as_options({"lr": 0.02})), spec(options=as_options(METHODS["gcn-sl-cc"].options()))
    both = [result(of=old, status="failed"), result(of=new, test=0.7)]
    (found,) = by_key(both[::order]).values()
    assert found.metrics == {"test": 0.7}
