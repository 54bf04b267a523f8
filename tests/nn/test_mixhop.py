import numpy as np
import pytest
import torch
from torch_geometric.nn import MixHopConv

from gcnsl.nn import MixHop, MixHopConfig, normalized_adjacency
from gcnsl.nn.mixhop import MixHopConvolution

from .cases import CLASSES, D, N, P, adjacency_matrix, both_forms, drawn, small_graph, symmetric, weights


def mix(H: np.ndarray, A_hat: np.ndarray, w: dict, layer: int, powers: tuple) -> np.ndarray:
    """One layer: a product for each power, side by side."""
    W = np.split(w[f"convs.{layer}.lin.weight"], len(powers), axis=1)
    sides = [np.linalg.matrix_power(A_hat, power) @ H @ W[k] for k, power in enumerate(powers)]
    return np.concatenate(sides, axis=1) + w[f"convs.{layer}.bias"]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("powers", [(0, 1, 2), (1,), (0, 3)])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_is_the_equation(powers, num_layers) -> None:
    data = small_graph()
    x = data.x.double()
    model = drawn(MixHop(D, P, CLASSES, powers=powers, num_layers=num_layers))
    for norm in model.norms:
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
    w, H, A_hat = weights(model), x.numpy(), symmetric(adjacency_matrix(data) + np.eye(N))
    for layer in range(num_layers - 1):
        H, norm = mix(H, A_hat, w, layer, powers), model.norms[layer]
        H = (H - norm.running_mean.numpy()) / np.sqrt(norm.running_var.numpy() + norm.eps)
        H = np.maximum(H * w[f"norms.{layer}.weight"] + w[f"norms.{layer}.bias"], 0)
    last = np.split(mix(H, A_hat, w, num_layers - 1, powers), len(powers), axis=1)
    q = np.exp(w["power_scores"]) / np.exp(w["power_scores"]).sum()
    expected = sum(q[k] * part for k, part in enumerate(last))
    for features in both_forms(x):
        logits = model(features, normalized_adjacency(data.edge_index, N))
        np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.usefixtures("double")
def test_layer_is_torch_geometrics() -> None:
    data, powers = small_graph(), (0, 1, 3)
    ours, theirs = drawn(MixHopConvolution(D, P, powers)), MixHopConv(D, P, list(powers))
    with torch.no_grad():
        theirs.bias.copy_(ours.bias)
        for power, weight in zip(powers, ours.lin.weight.split(P), strict=True):
            theirs.lins[power].weight.copy_(weight)
    expected = theirs(data.x.double(), data.edge_index)
    torch.testing.assert_close(ours(data.x.double(), normalized_adjacency(data.edge_index, N)), expected)


def test_powers_may_come_in_any_order() -> None:
    data = small_graph()
    adjacency = normalized_adjacency(data.edge_index, N)
    up, down = (drawn(MixHop(D, P, CLASSES, powers=powers)) for powers in ((0, 1, 2), (2, 1, 0)))
    assert up(data.x, adjacency).equal(down(data.x, adjacency))


def test_a_hidden_layer_has_as_many_columns_for_each_power() -> None:
    model = MixHopConfig(power_channels=21, powers=(0, 1, 2), num_layers=3).build(D, CLASSES, N)
    assert [norm.num_features for norm in model.norms] == [63, 63]
