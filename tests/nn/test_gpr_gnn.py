import pytest
import torch
from torch_geometric.nn import APPNP

from gcnsl.nn import GPRGNN, GPRGNNConfig

from .cases import CLASSES, D, P, assert_same, both_forms, both_sides, dense_adjacency, drawn, small_graph


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("hops", [1, 4])
def test_is_the_equation(hops) -> None:
    data = small_graph()
    x, A_hat = data.x.double(), both_sides(dense_adjacency(data, loops=True))
    model = drawn(GPRGNN(D, P, CLASSES, hops=hops))
    first, last = model.mlp.lins
    H = torch.relu(x @ first.weight.T + first.bias) @ last.weight.T + last.bias
    expected = sum(model.gamma[k] * torch.linalg.matrix_power(A_hat, k) @ H for k in range(hops + 1))
    _, adjacency = GPRGNNConfig().inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, adjacency), expected)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("restart", [0.1, 0.5, 1.0])
def test_it_starts_as_pagerank(restart) -> None:
    data = small_graph()
    model = GPRGNN(D, P, CLASSES, restart=restart).eval()
    _, adjacency = GPRGNNConfig().inputs(data, None, seed=0)
    expected = APPNP(10, restart)(model.mlp(data.x.double()), data.edge_index)
    torch.testing.assert_close(model(data.x.double(), adjacency), expected)
    torch.testing.assert_close(model.gamma.sum(), torch.tensor(1.0))


def test_gamma_does_not_decay() -> None:
    model = GPRGNN(D, P, CLASSES)
    weights, gamma = model.parameter_groups(0.25)
    assert [weights["weight_decay"], gamma["weight_decay"]] == [0.25, 0]
    assert gamma["params"] == [model.gamma]
    assert len(weights["params"]) + 1 == len(list(model.parameters()))
