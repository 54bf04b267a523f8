"""How a model is declared, what a model of one's own has to bring along, and the layers that all share."""

import inspect
from dataclasses import dataclass

import pytest
import torch

from gcnsl.errors import InputError
from gcnsl.methods import METHODS, Method, fit, prepare
from gcnsl.nn import GCN, GCNSL
from gcnsl.nn.config import GCNConfig, ModelConfig
from gcnsl.nn.graph_model import CHANNELS, dropout, scale_of_kept
from gcnsl.options import option
from gcnsl.training import TrainingSettings

from .cases import CLASSES, D, N, small_graph


def test_arguments_are_checked_by_position_and_by_name() -> None:
    with pytest.raises(InputError, match=r"out_channels\(0\) must be >= 1"):
        GCN(D, 8, 0)
    with pytest.raises(InputError, match=r"in_channels\(2.0\) must be a whole number >= 1"):
        GCN(2.0, 8, CLASSES)
    with pytest.raises(InputError, match=r"hidden_channels\(0\) must be >= 1"):
        GCN(D, 0, CLASSES)
    with pytest.raises(InputError, match=r"norm\('btch'\) must be one of none, batch, layer; did you mean batch\?"):
        GCN(D, 8, CLASSES, norm="btch")
    with pytest.raises(InputError, match=r"spectral_channels\(-1\) must be >= 0"):
        GCNSL(D, 8, CLASSES, -1)
    with pytest.raises(TypeError, match="missing a required argument: 'out_channels'"):
        GCN(D, 8)
    with pytest.raises(TypeError, match="unexpected keyword argument 'feature_norm'"):
        GCN(D, 8, CLASSES, feature_norm="row")


def test_help_describes_every_argument_once() -> None:
    for config in (method.config for method in METHODS.values()):
        model = type(config.build(2, 2, 2))
        described = model.__doc__.partition("\nArgs:")[2].partition("\n\nShapes:\n")[0]
        meanings = CHANNELS | {option.name: option.meaning for option in config.described()}
        for argument in inspect.signature(model).parameters:
            assert described.count(f"\n    {argument}: ") == 1, argument
            assert meanings.get(argument, "") in " ".join(described.split()), argument


def test_signatures_have_the_declared_kinds_and_defaults() -> None:
    signature = str(inspect.signature(GCN))
    assert signature.startswith("(in_channels: int, hidden_channels: int, out_channels: int, *, ")
    assert "norm: Literal['none', 'batch', 'layer'] = 'none'" in signature
    assert inspect.signature(GCN).parameters["num_layers"].default == GCNConfig.num_layers == 2
    assert list(inspect.signature(GCNSL).parameters)[2:4] == ["out_channels", "spectral_channels"]


@dataclass(frozen=True)
class LinearConfig(ModelConfig):
    bias: bool = option(True, "Whether there is a bias.")

    def inputs(self, graph, precomputed, *, seed):
        return (graph.x,)

    def build(self, in_channels, out_channels, num_nodes):
        return torch.nn.Linear(in_channels, out_channels, bias=self.bias)


def test_a_configuration_of_ones_own_is_a_method() -> None:
    method = Method("linear", LinearConfig(), TrainingSettings(epochs=2)).with_options(
        bias=False, feature_norm="none", standardize="never"
    )
    data = small_graph()
    prepared = prepare(method, data, seed=0, device=torch.device("cpu"))
    every = torch.ones(N, dtype=torch.bool)
    fitted = fit(prepared, train_mask=every, val_mask=every, seed=0)
    assert fitted.model.bias is None
    assert fitted.logits().shape == (N, CLASSES)
    assert prepared.inputs[0].equal(data.x)


@pytest.mark.parametrize(("rate", "shape"), [(0.1, (1,)), (0.6, (301, 77)), (0.99999, (301, 77)), (0.6, (0, 3))])
def test_entries_go_at_the_rate_and_the_rest_is_scaled(rate, shape) -> None:
    torch.manual_seed(0)
    x = torch.ones(shape, dtype=torch.double, requires_grad=True)
    dropped = dropout(x, rate, training=True)
    assert dropped.shape == x.shape
    kept = dropped.detach() != 0
    torch.testing.assert_close(
        dropped.detach()[kept], torch.full((int(kept.sum()),), 1 / (1 - rate)).double(), rtol=0.6, atol=0
    )
    spread = (rate * (1 - rate) / max(x.numel(), 1)) ** 0.5
    if x.numel() > 1000:
        assert abs(float(kept.double().mean()) - (1 - rate)) < 5 * spread + 1 / 65536
    dropped.sum().backward()
    assert x.grad.equal(dropped.detach())  # of ones


def test_entries_go_independently() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(400, 400), 0.5, training=True) > 0).double() - 0.5
    for shift in (1, 2, 3, 4, 7, 400):
        neighbours = kept.flatten()[shift:] * kept.flatten()[:-shift]
        assert abs(float(neighbours.mean())) < 5 * 0.25 / 400


@pytest.mark.parametrize("rate", [0.3, 0.99999])
def test_in_place_the_same_entries_go(rate) -> None:
    x, results = torch.rand(301, 77), []
    for in_place in (False, True):
        torch.manual_seed(0)
        results.append(dropout(x.clone(), rate, training=True, in_place=in_place))
    torch.testing.assert_close(*results)
    kept = results[0] > 0
    torch.testing.assert_close(results[0][kept], x[kept] * scale_of_kept(x, rate))
