"""The networks that average over neighbours: each is its equation, written out with dense matrices."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm
from torch_geometric.nn import APPNP, GCNConv

from gcnsl.nn import (
    FSGNN,
    GAT,
    GCN,
    GPRGNN,
    MLP,
    SAGE,
    FSGNNConfig,
    GATConfig,
    GCNConfig,
    GPRGNNConfig,
    MixHop,
    MLPConfig,
    SAGEConfig,
    normalized_adjacency,
)
from gcnsl.nn.gcn import GraphConvolution

from .cases import (
    CLASSES,
    D,
    N,
    P,
    adjacency_matrix,
    assert_same,
    batch_normalised,
    both_forms,
    both_sides,
    dense_adjacency,
    directed_graph,
    drawn,
    row_means,
    small_graph,
    symmetric,
    weights,
    with_statistics,
)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_mlp_is_its_equation(num_layers) -> None:
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


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_gcn_is_its_equation(norm, residual, num_layers) -> None:
    data = small_graph()
    x, A_hat = data.x.double(), both_sides(dense_adjacency(data, loops=True))
    model = with_statistics(drawn(GCN(D, P, CLASSES, num_layers=num_layers, residual=residual, norm=norm)))
    H = x
    for layer, conv in enumerate(model.convs):
        if layer and norm == "batch":
            H = batch_normalised(H, model.norms[layer - 1])
        elif layer and norm == "layer":
            H = layer_norm(H, [P], model.norms[layer - 1].weight, model.norms[layer - 1].bias)
        H = torch.relu(H) if layer else H
        skip = H @ model.skips[layer].weight.T if residual else 0
        H = A_hat @ H @ conv.lin.weight.T + conv.bias + skip
    for features in both_forms(x):
        assert_same(model, model(features, normalized_adjacency(data.edge_index, N)), H)


@pytest.mark.parametrize("network", [GCN, SAGE])
def test_features_are_dropped_unless_told_otherwise(network) -> None:
    data = small_graph()
    adjacency = normalized_adjacency(data.edge_index, N)
    for dropped in (True, False):
        model = drawn(network(D, P, CLASSES, num_layers=1, dropout=0.5, drop_features=dropped)).train()
        assert model(data.x, adjacency).equal(model(data.x, adjacency)) == (not dropped)


@pytest.mark.usefixtures("double")
def test_a_layer_of_gcn_is_torch_geometrics() -> None:
    data = small_graph()
    ours, theirs = drawn(GraphConvolution(D, P)), GCNConv(D, P)
    theirs.load_state_dict(ours.state_dict())
    expected = theirs(data.x.double(), data.edge_index)
    torch.testing.assert_close(ours(data.x.double(), normalized_adjacency(data.edge_index, N)), expected)


def test_switches_of_the_adjacency_reach_it() -> None:
    data = small_graph()
    _, adjacency = GCNConfig(self_loops=False, adjacency_norm="row").inputs(data, None, seed=0)
    A = adjacency_matrix(data)
    expected = A / np.maximum(A.sum(1, keepdims=True), 1)
    np.testing.assert_allclose(adjacency.to_dense().numpy(), expected, rtol=1e-6)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
def test_sage_is_its_equation(num_layers, direction) -> None:
    data = directed_graph()
    x, mean = data.x.double(), row_means(dense_adjacency(data, direction))
    model = with_statistics(drawn(SAGE(D, P, CLASSES, num_layers=num_layers, norm="batch")))
    H = x
    for layer, conv in enumerate(model.convs):
        H = torch.relu(batch_normalised(H, model.norms[layer - 1])) if layer else H
        V, W = conv.lin_self, conv.lin_neighbours
        H = H @ V.weight.T + V.bias + mean @ H @ W.weight.T
    _, given = SAGEConfig(direction=direction).inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, given), H)


def attend(H: np.ndarray, A: np.ndarray, w: dict, layer: str, heads: int) -> np.ndarray:
    """One layer, neighbour by neighbour."""
    HW = (H @ w[f"{layer}.lin.weight"]).reshape(N, heads, -1)
    to_source, to_target = w[f"{layer}.attention.att_src"][0], w[f"{layer}.attention.att_dst"][0]
    out = np.zeros_like(HW)
    for i in range(N):
        neighbours = [j for j in range(N) if A[i, j] or i == j]
        for head in range(heads):
            scores = np.array([HW[j, head] @ to_source[head] + HW[i, head] @ to_target[head] for j in neighbours])
            scores = np.where(scores > 0, scores, 0.2 * scores)
            alpha = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
            out[i, head] = sum(a * HW[j, head] for a, j in zip(alpha, neighbours, strict=True))
    return out.reshape(N, -1) + w[f"{layer}.attention.bias"]


@pytest.mark.usefixtures("double")
def test_gat_is_its_equation() -> None:
    data = small_graph()
    x, (_, *edges) = data.x.double(), GATConfig().inputs(data, None, seed=0)
    model = drawn(GAT(D, P, CLASSES, heads=3))
    w, A = weights(model), adjacency_matrix(data)
    H = attend(x.numpy(), A, w, "first", 3)
    H = np.where(H > 0, H, np.exp(np.minimum(H, 0)) - 1)
    expected = attend(H, A, w, "second", 1)
    for features in both_forms(x):
        np.testing.assert_allclose(model(features, *edges).detach().numpy(), expected, rtol=1e-8, atol=1e-10)


def mix(H: np.ndarray, A_hat: np.ndarray, w: dict, layer: int, powers: tuple) -> np.ndarray:
    """One layer: a product for each power, side by side."""
    W = np.split(w[f"convs.{layer}.lin.weight"], len(powers), axis=1)
    sides = [np.linalg.matrix_power(A_hat, power) @ H @ W[k] for k, power in enumerate(powers)]
    return np.concatenate(sides, axis=1) + w[f"convs.{layer}.bias"]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("powers", [(0, 1, 2), (1,), (0, 3)])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_mixhop_is_its_equation(powers, num_layers) -> None:
    data = small_graph()
    x = data.x.double()
    model = with_statistics(drawn(MixHop(D, P, CLASSES, powers=powers, num_layers=num_layers)))
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


def test_powers_may_come_in_any_order() -> None:
    data = small_graph()
    adjacency = normalized_adjacency(data.edge_index, N)
    up, down = (drawn(MixHop(D, P, CLASSES, powers=powers)) for powers in ((0, 1, 2), (2, 1, 0)))
    assert up(data.x, adjacency).equal(down(data.x, adjacency))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("hops", [1, 4])
def test_gpr_gnn_is_its_equation(hops) -> None:
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


def row_sums(A: torch.Tensor) -> torch.Tensor:
    """D^-1/2 A D^-1/2 with the sums of rows at both ends, 1 instead of 0."""
    root = A.sum(1).clamp(min=1).rsqrt()
    return root[:, None] * A * root


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("hops", [1, 3])
@pytest.mark.parametrize("direction", ["undirected", "out"])
def test_fsgnn_is_its_equation(hops, direction) -> None:
    data = directed_graph()
    x = data.x.double()
    model = drawn(FSGNN(D, P, CLASSES, hops=hops))
    plain, looped = (row_sums(dense_adjacency(data, direction, loops=loops)) for loops in (False, True))
    S = [x, *(torch.linalg.matrix_power(A, k) @ x for A in (plain, looped) for k in range(1, hops + 1))]
    W = [*model.plain.lin.weight.split(P), *model.looped.lin.weight.split(P)]
    b = [*model.plain.bias.split(P), *model.looped.bias.split(P)]
    scales = model.selection.exp() / model.selection.exp().sum()
    H = [S[m] @ W[m].T + b[m] for m in range(2 * hops + 1)]
    H = [scales[m] * H[m] / H[m].norm(dim=1, keepdim=True) for m in range(2 * hops + 1)]
    expected = torch.relu(torch.cat(H, dim=1)) @ model.lin_out.weight.T + model.lin_out.bias
    _, *adjacencies = FSGNNConfig(direction=direction).inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, *adjacencies), expected)


def test_the_selection_is_trained_with_a_rate_of_its_own() -> None:
    model = FSGNN(D, P, CLASSES, selection_lr=0.03, selection_weight_decay=0.2)
    others, selection = model.parameter_groups(0.5)
    assert selection == {"params": [model.selection], "lr": 0.03, "weight_decay": 0.2}
    assert others["weight_decay"] == 0.5
    assert len(others["params"]) + 1 == len(list(model.parameters()))


def test_a_node_without_features_has_a_moderate_gradient() -> None:
    data = directed_graph()
    data.x = torch.zeros_like(data.x)
    model = FSGNN(D, P, CLASSES)
    _, *adjacencies = FSGNNConfig().inputs(data, None, seed=0)
    torch.nn.functional.cross_entropy(model(data.x, *adjacencies), data.y).backward()
    assert max(float(parameter.grad.abs().max()) for parameter in model.parameters()) < 100
