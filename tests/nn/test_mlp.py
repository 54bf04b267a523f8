import copy

import numpy as np
import pytest
import torch
from model_cases import (
    CLASSES,
    D,
    P,
    accuracy_after_training,
    both_forms,
    check_dropout_is_for_training_only,
    check_every_model_law,
    drawn,
    small_graph,
    weights,
)

from gcnsl import InputError
from gcnsl.nn import MLP, MLPConfig


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_is_the_equation(num_layers) -> None:
    x = small_graph().x.double()
    model = drawn(MLP(D, P, CLASSES, num_layers=num_layers))
    w, H = weights(model), x.numpy()
    for layer in range(num_layers):
        H = (np.maximum(H, 0) if layer else H) @ w[f"lins.{layer}.weight"] + w[f"lins.{layer}.bias"]
    for features in both_forms(x):
        np.testing.assert_allclose(model(features).detach().numpy(), H, rtol=1e-10)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_laws(num_layers) -> None:
    check_every_model_law(MLPConfig(num_layers=num_layers))


def test_dropout() -> None:
    check_dropout_is_for_training_only(MLPConfig())


def test_learns() -> None:
    assert accuracy_after_training(MLPConfig()) > 0.45


def test_edges_change_nothing() -> None:
    data = small_graph()
    other = copy.copy(data)
    other.edge_index = torch.tensor([[0, 1], [1, 0]])
    config = MLPConfig()
    model = drawn(config.build(data))
    assert model(*config.prepare(data, seed=0)).equal(model(*config.prepare(other, seed=0)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_layers": 0}, r"num_layers\(0\) must be >= 1"),
        ({"hidden_channels": 0}, r"hidden_channels\(0\) must be >= 1"),
        ({"dropout": 1.0}, r"dropout\(1.0\) must be in \[0, 1\)"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        MLPConfig(**arguments).build(small_graph())


def test_bad_feature_norm() -> None:
    with pytest.raises(InputError, match=r"norm\('column'\) must be one of none, row, l2"):
        MLPConfig(feature_norm="column").prepare(small_graph(), seed=0)
