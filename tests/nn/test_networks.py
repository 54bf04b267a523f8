"""The networks that average over neighbours: each is its equation, written out with dense matrices."""

import pytest
import torch
from torch.nn.functional import layer_norm
from torch_geometric.nn import APPNP

from gcnsl.nn import FSGNN, GAT, GCN, GPRGNN, MLP, SAGE, MixHop, normalized_adjacency
from gcnsl.nn.config import FSGNNConfig, GATConfig, GPRGNNConfig, SAGEConfig

from .cases import (
    CLASSES,
    D,
    N,
    P,
    assert_same,
    batch_normalised,
    both_forms,
    both_sides,
    dense_adjacency,
    directed_graph,
    drawn,
    row_means,
    small_graph,
    with_statistics,
)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("num_layers", [1, 4])
def test_mlp_is_its_equation(num_layers) -> None:
    x = small_graph().x.double()
    model, H = drawn(MLP(D, P, CLASSES, num_layers=num_layers)), x
    for layer, lin in enumerate(model.lins):
        H = (torch.relu(H) if layer else H) @ lin.weight.T + lin.bias
    for features in both_forms(x):
        assert_same(model, model(features), H)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("norm", "residual", "num_layers"), [("none", False, 1), ("batch", True, 4), ("layer", False, 4), ("none", True, 1)]
)
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


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("num_layers", "direction"), [(1, "undirected"), (4, "out"), (4, "in")])
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


def attend(H: torch.Tensor, A: torch.Tensor, layer, heads: int) -> torch.Tensor:
    """One layer, with a matrix of all pairs for each head."""
    parts = []
    for head, HW in enumerate((H @ layer.lin.weight.T).chunk(heads, dim=1)):
        to_source, to_target = (layer.attention[name][0, head] for name in ("att_src", "att_dst"))
        scores = torch.nn.functional.leaky_relu((HW @ to_target)[:, None] + HW @ to_source, 0.2)
        parts.append(scores.masked_fill(A == 0, -torch.inf).softmax(dim=1) @ HW)
    return torch.cat(parts, dim=1) + layer.attention["bias"]


@pytest.mark.usefixtures("double")
def test_gat_is_its_equation() -> None:
    data = small_graph()
    x, (_, *edges) = data.x.double(), GATConfig().inputs(data, None, seed=0)
    model, A = drawn(GAT(D, P, CLASSES, heads=3)), dense_adjacency(data, loops=True)
    expected = attend(torch.nn.functional.elu(attend(x, A, model.first, 3)), A, model.second, 1)
    for features in both_forms(x):
        assert_same(model, model(features, *edges), expected)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("network", [GCN, SAGE, GAT])
def test_residual_blocks_are_their_equation(network) -> None:
    data = small_graph()
    x = data.x.double()
    model = drawn(network(D, P, CLASSES, blocks=3))
    blocks, graph = model.blocks, model.declared(blocks=3).inputs(data, None, seed=0)[1:]
    H = blocks.embed(x)
    for layer, (conv, norm) in enumerate(zip(blocks.convs, blocks.norms, strict=True)):
        skip = H @ blocks.skips[layer].weight.T if network != SAGE else 0
        H = H + torch.relu(layer_norm(conv(H, *graph) + skip, [H.shape[1]], norm.weight, norm.bias))
    for features in both_forms(x):
        assert_same(model, model(features, *graph), blocks.head(H))
    assert not model.train()(x, *graph).equal(model(x, *graph)), "dropout"


def mix(H: torch.Tensor, A_hat: torch.Tensor, conv, powers: tuple) -> torch.Tensor:
    """One layer: a product for each power, side by side."""
    maps = zip(powers, conv.lin.weight.chunk(len(powers)), strict=True)
    return torch.cat([torch.linalg.matrix_power(A_hat, power) @ H @ W.T for power, W in maps], dim=1) + conv.bias


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("powers", "num_layers"), [((0, 1, 2), 3), ((1,), 1), ((0, 3), 3)])
def test_mixhop_is_its_equation(powers, num_layers) -> None:
    data = small_graph()
    x, A_hat = data.x.double(), both_sides(dense_adjacency(data, loops=True))
    model = with_statistics(drawn(MixHop(D, P, CLASSES, powers=powers[::-1], num_layers=num_layers)))
    H = x
    for layer, conv in enumerate(model.convs):
        H = torch.relu(batch_normalised(H, model.norms[layer - 1])) if layer else H
        H = mix(H, A_hat, conv, powers)
    shares = model.power_scores.exp() / model.power_scores.exp().sum()
    expected = sum(share * part for share, part in zip(shares, H.chunk(len(powers), dim=1), strict=True))
    for features in both_forms(x):
        assert_same(model, model(features, normalized_adjacency(data.edge_index, N)), expected)


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


def test_some_weights_have_a_decay_and_a_rate_of_their_own() -> None:
    model = GPRGNN(D, P, CLASSES)
    rest, of_gamma = model.parameter_groups(0.25)
    assert rest == {"params": list(model.mlp.parameters()), "weight_decay": 0.25}
    assert of_gamma == {"params": [model.gamma], "weight_decay": 0}
    model = FSGNN(D, P, CLASSES, selection_lr=0.03, selection_weight_decay=0.2)
    rest, selection = model.parameter_groups(0.5)
    assert selection == {"params": [model.selection], "lr": 0.03, "weight_decay": 0.2}
    assert rest["weight_decay"] == 0.5
    assert len(rest["params"]) + 1 == len(list(model.parameters()))


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


def test_a_node_without_features_has_a_moderate_gradient() -> None:
    data = directed_graph()
    data.x = torch.zeros_like(data.x)
    model = FSGNN(D, P, CLASSES)
    _, *adjacencies = FSGNNConfig().inputs(data, None, seed=0)
    torch.nn.functional.cross_entropy(model(data.x, *adjacencies), data.y).backward()
    assert max(float(parameter.grad.abs().max()) for parameter in model.parameters()) < 100
