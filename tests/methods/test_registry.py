"""The methods by name, and what a search tries of their hyper-parameters."""

import math

import optuna
import pytest

from gcnsl.errors import ArgumentError, InputError
from gcnsl.experiments import paper
from gcnsl.methods import ALIASES, METHODS, Method, find_method
from gcnsl.methods.registry import combinations, space_of, starts_of
from gcnsl.methods.resolver import published_path, read_settings
from gcnsl.nn.config import GCNSLConfig
from gcnsl.options import Log, OneOf, Steps
from gcnsl.training import TrainingSettings

PUBLISHED = sorted(published_path("cora").parent.glob("*.toml"))


def test_names_and_aliases() -> None:
    assert find_method("gcn-sl-cc").config == GCNSLConfig(merge="concat")
    assert find_method("gcn-sl-av").config == GCNSLConfig(merge="average")
    assert find_method("gcn-sl") is METHODS["gcn-sl-cc"]
    assert not ALIASES.keys() & METHODS.keys()
    assert all(find_method(name) is METHODS[name] for name in METHODS)


@pytest.mark.parametrize("name", ["gcm", "", None, ["gcn"]])
def test_an_unknown_name_is_answered_with_the_known_ones(name) -> None:
    with pytest.raises(
        ArgumentError, match=r"method\(.*\) must be one of mlp, gcn, .*gcn-sl-cc, .*h2gcn(; did you mean gcn\?)?$"
    ):
        find_method(name)


def test_options_reach_the_model_or_the_training() -> None:
    method = METHODS["gcn-sl-cc"].with_options(epsilon=0.7, lr=0.1)
    assert method == Method("gcn-sl-cc", GCNSLConfig(epsilon=0.7), TrainingSettings(lr=0.1))
    assert METHODS["gcn-sl-cc"].config.epsilon != 0.7, "the table stays as it is"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"epsilom": 0.5},
            "^epsilom: gcn-sl-cc has no such option; there are feature_norm, .*; did you mean epsilon[?]$",
        ),
        ({"zzz": 0.5}, "^zzz: gcn-sl-cc has no such option; there are feature_norm, .*, evaluate_every$"),
        ({"tells_new_nodes": True}, "^tells_new_nodes: gcn-sl-cc has no such option"),
        ({"epochs": 0}, r"^epochs\(0\) must be >= 1$"),
    ],
)
def test_what_can_not_be_is_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        METHODS["gcn-sl-cc"].with_options(**options)


def test_options_of_version_0_2_0_are_known_by_their_former_names() -> None:
    assert METHODS["mixhop"].with_options(power_channels=5) == METHODS["mixhop"].with_options(hidden_channels=5)


def test_rules_between_options_are_kept_before_anything_is_prepared() -> None:
    with pytest.raises(InputError, match=r"kernel_size\(4\) must be odd"):
        METHODS["nlgnn"].with_options(kernel_size=4)
    with pytest.raises(InputError, match=r"powers\(\(1, 1\)\) must be one or more different whole numbers"):
        METHODS["mixhop"].with_options(powers=[1, 1])


def in_space(name: str, options) -> dict:
    """What the search ranges make of these options."""
    fixed = optuna.trial.FixedTrial({**METHODS[name].options(), **options})
    return {option: space_of(name)[option](fixed, option) for option in options}


def test_spaces_hold_the_paper_s_and_the_published_values_defaults_and_starts() -> None:
    tried = [("gcn-sl-cc", paper.hyperparameters(dataset)) for dataset in paper.DATASETS]
    tried += [(name, parts["options"]) for path in PUBLISHED for name, parts in read_settings(path).items()]
    for name, method in METHODS.items():
        tried += [(name, values) for values in (method.options(), *starts_of(name))]
        for start in starts_of(name):
            method.with_options(**start)
    for name, options in tried:
        known = {option: value for option, value in options.items() if option in space_of(name)}
        assert in_space(name, known) == known


def test_combinations_are_counted_where_values_can_be_listed() -> None:
    listed = {"a": OneOf("x", "y", "z"), "b": Steps(2, 8, 2)}
    assert listed["b"].values == (2, 4, 6, 8)
    assert combinations(listed) == 12
    assert Steps(0.0, 0.3, 0.1).values == (0.0, 0.1, 0.2, 0.3)
    assert combinations({}) == 1
    assert combinations(listed | {"c": Log(0.1, 1.0)}) == math.inf
