import pytest

from gcnsl.errors import ArgumentError
from gcnsl.methods import METHODS
from gcnsl.methods.together import check_divisible

from ..sharding.ranks import in_processes
from .together_cases import CASES, go_on, interrupt, train_case, train_cases

NEAR = 1e-5


@pytest.fixture(scope="module")
def in_one_process() -> dict[str, dict[str, list[float]]]:
    """A group with a single member: what is dropped is drawn as in larger groups."""
    return in_processes(1, train_cases, list(CASES))[0]


def assert_same(found: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert values == pytest.approx(expected[name], abs=NEAR, nan_ok=True), name


@pytest.mark.parametrize(("size", "names"), [(2, list(CASES)), (4, ["gcn-sl-plus", "gcn-sl-cc"])])
def test_losses_do_not_depend_on_the_number_of_processes(size: int, names: list[str], in_one_process) -> None:
    found = in_processes(size, train_cases, names)[0]
    for name, values in found.items():
        assert_same(values, in_one_process[name])


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("dry")])
def test_without_dropout_they_are_those_of_ordinary_training(name: str, in_one_process) -> None:
    assert_same(in_one_process[name], train_case(name))


def test_another_number_of_processes_continues_an_interrupted_run(tmp_path, in_one_process) -> None:
    said, epochs = in_processes(3, interrupt, tmp_path / "run", 7)[0]
    assert said.startswith("interrupted after epoch 7; the run is saved in")
    assert epochs == 7
    assert_same(in_processes(2, go_on, tmp_path / "run")[0], in_one_process["gcn-sl-plus"])


@pytest.mark.parametrize("method", ["auto", "h2gcn-2", "boosted-trees"])
def test_methods_that_processes_cannot_divide(method: str) -> None:
    with pytest.raises(ArgumentError, match=r"method\(.*must be one of mlp, gcn, gcn-sl-cc, gcn-sl-av, gcn-sl-plus"):
        check_divisible(method)


def test_aliases_are_known() -> None:
    check_divisible("gcn-sl")
    assert METHODS["gcn-sl-cc"].config.node_columns == {1}
