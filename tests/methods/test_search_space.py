import math

import optuna
import pytest

from gcnsl import InputError
from gcnsl.experiments import paper
from gcnsl.methods import METHODS
from gcnsl.methods.resolver import published_path, read_settings
from gcnsl.methods.search_space import _GRIDS, combinations, grid_of, space_of, starts_of
from gcnsl.options import Log, OneOf, Steps

PUBLISHED = sorted(published_path("cora").parent.glob("*.toml"))


@pytest.mark.parametrize("dataset", paper.DATASETS)
def test_the_space_holds_the_paper_s_values(dataset) -> None:
    options = paper.hyperparameters(dataset)
    space = space_of("gcn-sl-cc")
    assert space.keys() >= options.keys()
    fixed = optuna.trial.FixedTrial({**METHODS["gcn-sl-cc"].options(), **options})
    assert {name: space[name](fixed, name) for name in options} == options


@pytest.mark.parametrize("name", METHODS)
def test_spaces_hold_defaults_and_grids(name) -> None:
    defaults, space = METHODS[name].options(), space_of(name)
    for option, suggest in space.items():
        known = [defaults[option], *_GRIDS.get(name, {}).get(option, ())]
        assert [suggest(optuna.trial.FixedTrial({option: value}), option) for value in known] == known


@pytest.mark.parametrize("name", METHODS)
def test_spaces_hold_what_is_tried_first(name) -> None:
    space = space_of(name)
    for start in starts_of(name):
        assert {option: space[option](optuna.trial.FixedTrial(dict(start)), option) for option in start} == start
        METHODS[name].with_options(**start)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_spaces_hold_what_is_published(path) -> None:
    for name, parts in read_settings(path).items():
        space = space_of(name)
        known = {option: value for option, value in parts["options"].items() if option in space}
        found = {option: space[option](optuna.trial.FixedTrial(known), option) for option in known}
        assert found == known


def test_spaces_of_other_methods_are_of_their_own_options() -> None:
    for name, method in METHODS.items():
        assert space_of(name).keys() <= method.options().keys()
    assert {"lr", "weight_decay"} <= space_of("mlp").keys()
    assert not {"epsilon", "rounds"} & space_of("mlp").keys()


def test_the_switches_of_the_ablation_are_not_searched_for() -> None:
    assert not {"use_adjacency", "use_reconnected", "use_spectral"} & space_of("gcn-sl-cc").keys()


def test_a_method_without_a_grid_says_which_have_one() -> None:
    with pytest.raises(InputError, match=r"method\('mlp'\) has no grid in its literature: .*h2gcn-1"):
        grid_of("mlp")
    assert space_of("h2gcn-1", grid=True).keys() == {"dropout", "weight_decay", "relu"}


def test_combinations_are_counted_where_values_can_be_listed() -> None:
    listed = {"a": OneOf("x", "y", "z"), "b": Steps(2, 8, 2)}
    assert listed["b"].values == (2, 4, 6, 8)
    assert combinations(listed) == 12
    assert Steps(0.0, 0.3, 0.1).values == (0.0, 0.1, 0.2, 0.3)
    assert combinations({}) == 1
    assert combinations(listed | {"c": Log(0.1, 1.0)}) == math.inf
    assert combinations(space_of("h2gcn-1", grid=True)) == 8


def test_another_name_of_a_method_has_its_space() -> None:
    assert space_of("h2gcn").keys() == space_of("h2gcn-2").keys()
    assert grid_of("h2gcn") == grid_of("h2gcn-2")
