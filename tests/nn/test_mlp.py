import copy

import numpy as np
import pytest
import torch

from gcnsl.nn import MLP, MLPConfig

from .cases import CLASSES, D, N, P, both_forms, drawn, small_graph, weights


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


def test_edges_change_nothing() -> None:
    data = small_graph()
    other = copy.copy(data)
    other.edge_index = torch.tensor([[0, 1], [1, 0]])
    config = MLPConfig()
    model = drawn(config.build(D, CLASSES, N))
    assert model(*config.inputs(data, None, seed=0)).equal(model(*config.inputs(other, None, seed=0)))
