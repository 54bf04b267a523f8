"""What a model of one's own has to bring along."""

from dataclasses import dataclass

import pytest
import torch

from gcnsl.errors import InputError
from gcnsl.methods import Method, fit, prepare
from gcnsl.nn import ModelConfig, SAGEConfig
from gcnsl.options import option
from gcnsl.training import TrainingSettings

from .cases import CLASSES, N, small_graph


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


def test_by_default_nothing_is_precomputed() -> None:
    config = LinearConfig()
    assert config.precompute(small_graph(), seed=0) is None
    assert config.from_state({}, {}, small_graph(), seed=0) is None
    assert config.feature_norm == "row"
    assert not config.tells_new_nodes


def test_a_class_variable_is_no_option() -> None:
    assert LinearConfig.names() == ["feature_norm", "standardize", "bias"]
    with pytest.raises(
        InputError, match="tells_new_nodes: there is no such option; there are feature_norm, standardize, bias"
    ):
        LinearConfig.check(tells_new_nodes=True)


def test_an_unfinished_configuration_has_no_inputs() -> None:
    with pytest.raises(NotImplementedError):
        ModelConfig().inputs(small_graph(), None, seed=0)


def test_by_default_a_node_without_features_has_a_row_of_zeros() -> None:
    assert LinearConfig().empty_row(4, seed=0).equal(torch.zeros(4))


@pytest.mark.parametrize(("direction", "uses"), [("undirected", {"weights"}), ("in", {"weights", "directions"})])
def test_directions_are_used_unless_the_graph_is_seen_as_undirected(direction, uses) -> None:
    assert SAGEConfig(direction=direction).uses == uses
