import copy
from dataclasses import dataclass

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.methods import ALIASES, METHODS, Method, find_method, run_split, split_count, split_masks
from gcnsl.nn import GCNSLConfig
from gcnsl.training import TrainingSettings

pytestmark = pytest.mark.usefixtures("single_thread")

DATA = with_random_split(synthetic(n=60, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.8), runs=2)
QUICK = METHODS["gcn-sl-cc"].with_options(hidden_channels=4, n_components=3, n_anchors=20, epochs=6)


def test_names_and_aliases() -> None:
    assert find_method("gcn-sl-cc").config == GCNSLConfig(merge="concat")
    assert find_method("gcn-sl-av").config == GCNSLConfig(merge="average")
    assert find_method("gcn-sl") is METHODS["gcn-sl-cc"]
    assert not ALIASES.keys() & METHODS.keys()
    with pytest.raises(InputError, match=r"method\('gcm'\) must be one of .*gcn-sl-cc, "):
        find_method("gcm")


@pytest.mark.parametrize("name", METHODS)
def test_no_option_means_two_things(name) -> None:
    method = METHODS[name]
    assert len(method.options()) == len(vars(method.config)) + len(vars(method.training))
    assert method.with_options() == method
    assert method.with_options(**method.options()) == method


def test_options_reach_the_model_or_the_training() -> None:
    method = METHODS["gcn-sl-cc"].with_options(epsilon=0.7, lr=0.1)
    assert method == Method(GCNSLConfig(epsilon=0.7), TrainingSettings(lr=0.1))
    assert METHODS["gcn-sl-cc"].config.epsilon != 0.7, "the table stays as it is"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ({"rounds": "3"}, 3),
        ({"epsilon": "0.75"}, 0.75),
        ({"epsilon": "1"}, 1.0),
        ({"lr": "1e-3"}, 0.001),
        ({"self_loops": "no"}, False),
        ({"self_loops": "True"}, True),
        ({"merge": "average"}, "average"),
        ({"plateau_factor": "none"}, None),
        ({"plateau_factor": "0.5"}, 0.5),
    ],
)
def test_texts_are_read_as_what_the_option_is(text, value) -> None:
    options = METHODS["gcn-sl-cc"].with_options(**text).options()
    (name,) = text
    assert options[name] == value
    assert type(options[name]) is type(value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilom": "0.5"}, "epsilom: GCNSL has no such option; there are hidden_channels, .*, lr, "),
        ({"rounds": "many"}, r"rounds\('many'\) must be int"),
        ({"rounds": "2.5"}, r"rounds\('2.5'\) must be int"),
        ({"self_loops": "perhaps"}, r"self_loops\('perhaps'\) must be bool"),
        ({"plateau_factor": "half"}, r"plateau_factor\('half'\) must be float"),
        ({"epochs": "0"}, r"epochs\(0\) must be a whole number >= 1"),
    ],
)
def test_what_can_not_be_is_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        METHODS["gcn-sl-cc"].with_options(**options)


@pytest.mark.parametrize(("text", "powers"), [("0,1", (0, 1)), (" 2, 0 ", (2, 0)), ("3", (3,))])
def test_texts_are_read_as_whole_numbers(text, powers) -> None:
    method = METHODS["mixhop"].with_options(powers=text)
    assert method == METHODS["mixhop"].with_options(powers=powers)
    assert len(method.config.build(DATA).power_scores) == len(powers)


@pytest.mark.parametrize("text", ["", "two", "0;1", "0,1.5", "0,1,"])
def test_other_texts_are_no_whole_numbers(text) -> None:
    with pytest.raises(
        InputError, match=rf"powers\('{text}'\) must be whole numbers with commas between, such as 0,1,2"
    ):
        METHODS["mixhop"].with_options(powers=text)


def test_a_method_of_ones_own() -> None:
    @dataclass(frozen=True)
    class LinearConfig:
        bias: bool = True

        def prepare(self, data, *, seed):
            return (data.x,)

        def build(self, data):
            return torch.nn.Linear(data.num_features, len(data.class_names), bias=self.bias)

    method = Method(LinearConfig(), TrainingSettings(epochs=2)).with_options(bias="no")
    assert run_split(method, DATA, [DATA.x], run=0, seed=0, device="cpu").model.bias is None


def test_a_run_learns_from_its_split_and_repeats() -> None:
    inputs = QUICK.config.prepare(DATA, seed=0)
    first, again = (run_split(QUICK, DATA, inputs, run=1, seed=3, device="cpu") for _ in range(2))
    assert first.history.values == again.history.values
    assert set(first.history.values) == {"train_loss", "val_loss", "train_accuracy", "val_accuracy"}
    for name, mask in split_masks(DATA, 1).items():
        predicted = first.model(*inputs).argmax(dim=1)
        assert first.accuracy[name] == pytest.approx(float((predicted == DATA.y)[mask].float().mean()))
    assert first.accuracy["val"] == pytest.approx(first.history.best["val_accuracy"])
    other = run_split(QUICK, DATA, inputs, run=1, seed=4, device="cpu")
    assert other.history.values != first.history.values


def test_test_labels_decide_nothing() -> None:
    inputs = QUICK.config.prepare(DATA, seed=0)
    blind = copy.copy(DATA)
    blind.y = torch.where(DATA.test_mask[:, 0], (DATA.y + 1) % 3, DATA.y)
    seen, wrong = (run_split(QUICK, data, inputs, run=0, seed=0, device="cpu") for data in (DATA, blind))
    assert seen.history.values == wrong.history.values
    watched = run_split(QUICK, DATA, inputs, run=0, seed=0, device="cpu", watch_test=True).history
    assert len(watched["test_accuracy"]) == len(watched)
    assert {name: watched[name] for name in seen.history.values} == seen.history.values


def test_masks_of_a_run() -> None:
    assert split_count(DATA) == 2
    masks = split_masks(DATA, 1)
    assert [mask.tolist() for mask in masks.values()] == [
        DATA[f"{name}_mask"][:, 1].tolist() for name in ("train", "val", "test")
    ]
    single = copy.copy(DATA)
    for name in ("train", "val", "test"):
        single[f"{name}_mask"] = DATA[f"{name}_mask"][:, 1]
    assert split_count(single) == 1
    assert all(split_masks(single, 0)[name].equal(mask) for name, mask in masks.items())
    for run in (-1, 2):
        with pytest.raises(InputError, match=rf"run\({run}\) must be from 0 to 1: the graph has that many splits"):
            split_masks(DATA, run)


def test_a_graph_without_a_whole_split() -> None:
    bare = synthetic(n=30, h=0.5, classes=2, degree=2, features=3, seed=0)
    assert split_count(bare) == 0
    with pytest.raises(InputError, match="has no train nodes in run 0"):
        split_masks(bare, 0)
    partial = copy.copy(DATA)
    partial.test_mask = torch.zeros_like(DATA.test_mask)
    with pytest.raises(InputError, match="has no test nodes in run 0: give every part of a split some nodes"):
        split_masks(partial, 0)
