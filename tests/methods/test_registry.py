import pytest

from gcnsl.errors import ArgumentError, InputError
from gcnsl.methods import ALIASES, METHODS, Method, find_method
from gcnsl.nn import GCNSLConfig
from gcnsl.options import read_assignments
from gcnsl.training import TrainingSettings


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
    ("name", "text", "value"),
    [
        ("rounds", "3", 3),
        ("epsilon", "1", 1.0),
        ("lr", "1e-3", 0.001),
        ("self_loops", "false", False),
        ("merge", "average", "average"),
        ("plateau_factor", "none", None),
        ("plateau_factor", "0.5", 0.5),
    ],
)
def test_texts_are_read_as_what_the_option_is(name, text, value) -> None:
    read = METHODS["gcn-sl-cc"].with_options(**read_assignments({name: text})).options()[name]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"epsilom": 0.5},
            "^epsilom: gcn-sl-cc has no such option; there are feature_norm, .*; did you mean epsilon[?]$",
        ),
        ({"zzz": 0.5}, "^zzz: gcn-sl-cc has no such option; there are feature_norm, .*, evaluate_every$"),
        ({"tells_new_nodes": True}, "^tells_new_nodes: gcn-sl-cc has no such option"),
        ({"rounds": "many"}, r"^rounds\('many'\) must be a whole number from 1 to 64$"),
        ({"self_loops": "perhaps"}, r"^self_loops\('perhaps'\) must be true or false$"),
        ({"plateau_factor": "half"}, r"^plateau_factor\('half'\) must be a number > 0 and < 1$"),
        ({"epochs": 0}, r"^epochs\(0\) must be >= 1$"),
    ],
)
def test_what_can_not_be_is_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        METHODS["gcn-sl-cc"].with_options(**options)


def test_rules_between_options_are_kept_before_anything_is_prepared() -> None:
    with pytest.raises(InputError, match=r"kernel_size\(4\) must be odd"):
        METHODS["nlgnn"].with_options(kernel_size=4)
    with pytest.raises(InputError, match=r"powers\(\(1, 1\)\) must be one or more different whole numbers"):
        METHODS["mixhop"].with_options(powers=[1, 1])


def test_a_method_describes_its_own_values() -> None:
    described = {option.name: option for option in METHODS["mixhop"].described()}
    assert described["optimizer"].default == "sgd"
    assert described["powers"].range == "list of whole numbers >= 0 and <= 64"
    assert described["plateau_factor"].range == "number > 0 and < 1, none"
