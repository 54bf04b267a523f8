"""What a model's constructor takes is checked and documented as its configuration declares it."""

import inspect

import pytest

from gcnsl.errors import InputError
from gcnsl.methods import METHODS
from gcnsl.nn import GCN, GCNSL, GCNConfig
from gcnsl.nn.graph_model import CHANNELS

from .cases import CLASSES, D


@pytest.mark.parametrize(("value", "rule"), [(0, "must be >= 1"), (2.0, "must be a whole number >= 1")])
def test_channels_are_whole_numbers(value, rule) -> None:
    with pytest.raises(InputError, match=rf"out_channels\({value}\) {rule}"):
        GCN(D, 8, value)
    with pytest.raises(InputError, match=rf"in_channels\({value}\) {rule}"):
        GCN(value, 8, CLASSES)


def test_arguments_are_checked_by_position_and_by_name() -> None:
    with pytest.raises(InputError, match=r"hidden_channels\(0\) must be >= 1"):
        GCN(D, 0, CLASSES)
    with pytest.raises(InputError, match=r"norm\('btch'\) must be one of none, batch, layer; did you mean batch\?"):
        GCN(D, 8, CLASSES, norm="btch")
    with pytest.raises(TypeError, match="missing a required argument: 'out_channels'"):
        GCN(D, 8)


@pytest.mark.parametrize("name", METHODS)
def test_help_describes_every_argument_once(name) -> None:
    config = METHODS[name].config
    model = type(config.build(2, 2, 2))
    assert model.__doc__.count("\nArgs:\n") == 1
    described = model.__doc__.partition("\nArgs:")[2].partition("\n\nShapes:\n")[0]
    for argument in inspect.signature(model).parameters:
        assert described.count(f"\n    {argument}: ") == 1, argument
    meanings = CHANNELS | {option.name: option.meaning for option in config.described()}
    words = " ".join(described.split())
    assert all(meanings[argument] in words for argument in inspect.signature(model).parameters if argument in meanings)


def test_signatures_have_the_declared_defaults() -> None:
    assert str(inspect.signature(GCN)).startswith("(in_channels: int, hidden_channels: int, out_channels: int, *, ")
    assert inspect.signature(GCN).parameters["num_layers"].default == GCNConfig.num_layers == 2
    assert list(inspect.signature(GCNSL).parameters)[:2] == ["in_channels", "spectral_channels"]
