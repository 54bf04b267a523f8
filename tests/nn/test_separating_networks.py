"""The networks that keep a node, its neighbours or directions apart: each is its equation, written out densely."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path
from torch.nn.functional import layer_norm

from gcnsl import InputError, synthetic
from gcnsl.datasets.neighbourhoods import structural_neighbourhood
from gcnsl.nn import ACMGCN, H2GCN, LINKX, NLGNN, DirGCN, GeomGCN, h2gcn, normalized_adjacency
from gcnsl.nn.config import ACMGCNConfig, DirGCNConfig, H2GCNConfig, LINKXConfig
from gcnsl.nn.geom_gcn import divided_adjacency
from gcnsl.nn.h2gcn import two_hop_adjacency
from gcnsl.sparse import SparseMatrix

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


def mix(H: torch.Tensor, A_hat: torch.Tensor, A: torch.Tensor, layer, relu_first: bool) -> torch.Tensor:
    """One layer, channel by channel and node by node."""
    inner, outer = (torch.relu, lambda x: x) if relu_first else (lambda x: x, torch.relu)
    low, high, own = (inner(H @ W.T) for W in layer.lin.weight.chunk(3))
    channels = [outer(A_hat @ low), outer((torch.eye(N) - A_hat) @ high), outer(own)]
    if layer.lin_links is not None:
        channels.append(torch.relu(A @ layer.lin_links.weight.T))
    rows = []
    for i in range(N):
        scores = [
            torch.sigmoid(layer_norm(H_c[i], H_c[i].shape, norm.weight, norm.bias) @ score.weight[0])
            for H_c, norm, score in zip(channels, layer.norms, layer.scores, strict=True)
        ]
        shares = torch.softmax(layer.mix.weight @ torch.stack(scores) / len(channels), dim=0)
        rows.append(sum(share * H_c[i] for share, H_c in zip(shares, channels, strict=True)))
    return torch.stack(rows) * (1 if len(channels) == 4 else 3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("structure", [True, False])
@pytest.mark.parametrize(("residual", "relu_first", "direction"), [(True, False, "out"), (False, True, "undirected")])
def test_acm_gcn_is_its_equation(structure, residual, relu_first, direction) -> None:
    data = directed_graph()
    x, A = data.x.double(), dense_adjacency(data, direction)
    A_hat = row_means(dense_adjacency(data, direction, loops=True))
    model = drawn(ACMGCN(D, P, CLASSES, N, structure=structure, residual=residual, relu_first=relu_first))
    H = torch.relu(mix(x, A_hat, A, model.first, relu_first))
    if residual:
        H = H + torch.relu(x @ model.skip.weight.T + model.skip.bias)
    expected = mix(H, A_hat, A, model.second, relu_first)
    _, *adjacencies = ACMGCNConfig(structure=structure, direction=direction).inputs(data, None, seed=0)
    assert len(adjacencies) == (2 if structure else 1)
    for features in both_forms(x):
        assert_same(model, model(features, *adjacencies), expected)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("alpha", "jump", "unit_rows"), [(0.0, "max", True), (0.3, "cat", False), (1.0, "max", False)])
def test_dir_gcn_is_its_equation(alpha, jump, unit_rows) -> None:
    data = directed_graph()
    x, seen = data.x.double(), both_sides(dense_adjacency(data, "out"))
    model = drawn(DirGCN(D, P, CLASSES, num_layers=3, alpha=alpha, jump=jump, unit_rows=unit_rows))
    H, layers = x, []
    for layer in model.convs:
        parts = {name: H @ conv.lin.weight.T for name, conv in layer.convs.items()}
        out = alpha * (seen @ parts["out"] + layer.convs["out"].bias) if alpha else 0
        H = torch.relu(out + ((1 - alpha) * (seen.T @ parts["in"] + layer.convs["in"].bias) if alpha < 1 else 0))
        H = H / H.norm(dim=1, keepdim=True).clamp(min=1e-12) if unit_rows else H
        layers.append(H)
    joined = torch.cat(layers, dim=1) if jump == "cat" else torch.stack(layers).max(dim=0).values
    expected = joined @ model.lin_out.weight.T + model.lin_out.bias
    _, *adjacencies = DirGCNConfig().inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, *adjacencies), expected)


@pytest.mark.usefixtures("double")
def test_geom_gcn_is_its_equation() -> None:
    data = small_graph()
    x, found = data.x.double(), structural_neighbourhood(data.edge_index, N)
    model, A = drawn(GeomGCN(D, P, CLASSES)), torch.zeros(9, N, N)
    A[found.division.long(), found.edge_index[0], found.edge_index[1]] = 1
    A[8] = torch.eye(N)
    root = A.sum(dim=(0, 2)).rsqrt()
    A = root[:, None] * A * root
    maps = zip(A, model.first.lin.weight.chunk(9), strict=True)
    H = torch.relu(torch.cat([A_r @ x @ W.T for A_r, W in maps], dim=1))
    maps = zip(A, model.second.lin.weight.chunk(9), strict=True)
    expected = sum(A_r @ H @ W.T for A_r, W in maps) / 9
    for features in both_forms(x):
        assert_same(model, model(features, divided_adjacency(found, N)), expected)


def hops(A: torch.Tensor) -> list[torch.Tensor]:
    """Who is at distance 1, and who at distance 2."""
    distance = torch.from_numpy(shortest_path(A.numpy(), unweighted=True))
    return [(distance == steps).double() for steps in (1, 2)]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("relu", [True, False])
def test_h2gcn_is_its_equation(rounds, relu) -> None:
    data = small_graph()
    x, (A1, A2) = data.x.double(), map(both_sides, hops(dense_adjacency(data)))
    model = drawn(H2GCN(D, P, CLASSES, rounds=rounds, relu=relu))
    R = [x @ model.lin_embed.weight.T]
    R = [torch.relu(R[0]) if relu else R[0]]
    for k in range(rounds):
        R.append(torch.cat([A1 @ R[k], A2 @ R[k]], dim=1))
    _, *adjacencies = H2GCNConfig().inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, *adjacencies), torch.cat(R, dim=1) @ model.lin_out.weight.T)


@given(st.integers(8, 40), st.floats(0.5, 3), st.integers(0, 99), st.sampled_from([1, 50, 1 << 22]))
def test_two_hops_are_distance_two(n, degree, seed, block) -> None:
    edges = synthetic(n=n, h=0.5, classes=2, degree=degree, features=8, seed=seed).edge_index
    edges = torch.cat([edges, torch.tensor([[1], [1]])], dim=1)
    A = torch.zeros(n, n)
    A[edges[0], edges[1]] = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2gcn, "BLOCK_ENTRIES", block)
        found = two_hop_adjacency(edges, n)
    apart = hops(A)[1]
    assert isinstance(found, torch.Tensor) == (float(apart.mean()) > 0.15)
    dense = found if isinstance(found, torch.Tensor) else found.to_dense()
    torch.testing.assert_close(dense.double(), both_sides(apart), rtol=1e-6, atol=0)


def star(leaves: int) -> torch.Tensor:
    centre, others = torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)
    return torch.stack([torch.cat([centre, others]), torch.cat([others, centre])])


def test_too_many_pairs_are_refused_before_any_is_formed() -> None:
    with pytest.raises(
        InputError,
        match=r"H2GCN joins .* up to 10,000,100,000 pairs, which take 37 GiB, and at most 2 are allowed; use another",
    ):
        two_hop_adjacency(star(100_000), 100_001)


def test_full_neighbourhoods_are_kept_dense() -> None:
    data = small_graph()
    data.x, data.edge_index = torch.ones(41, 2), star(40)
    _, one_hop, two_hop = H2GCNConfig().inputs(data, None, seed=0)
    assert isinstance(one_hop, SparseMatrix)
    assert isinstance(two_hop, torch.Tensor)
    torch.testing.assert_close(two_hop[1:, 1:], (1 - torch.eye(40)) / 39)


def perceptron(x: torch.Tensor, mlp) -> torch.Tensor:
    for layer, lin in enumerate(mlp.lins):
        x = batch_normalised(torch.relu(x), mlp.norms[layer - 1]) if layer else x
        x = x @ lin.weight.T + lin.bias
    return x


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("layers", "direction"), [((1, 1, 1), "undirected"), ((2, 3, 4), "out"), ((1, 2, 1), "in")])
def test_linkx_is_its_equation(layers, direction) -> None:
    data = directed_graph()
    x, A = data.x.double(), dense_adjacency(data, direction)
    link_layers, feature_layers, num_layers = layers
    model = LINKX(D, P, CLASSES, N, link_layers=link_layers, feature_layers=feature_layers, num_layers=num_layers)
    model = with_statistics(drawn(model))
    H_A, H_X = perceptron(A, model.mlp_links), perceptron(x, model.mlp_x)
    W = torch.cat([model.mix_links.weight, model.mix_x.weight], dim=1).T
    H = torch.relu(torch.cat([H_A, H_X], dim=1) @ W + model.mix_x.bias + H_A + H_X)
    _, links = LINKXConfig(direction=direction).inputs(data, None, seed=0)
    for features in both_forms(x):
        assert_same(model, model(features, links), perceptron(H, model.mlp_final))


def convolve(rows: torch.Tensor, conv) -> torch.Tensor:
    """A one-dimensional convolution along the rows, a window of zeros beyond either end."""
    size, places = conv.weight.shape[2], range(len(rows))
    out = []
    for place in places:
        window = ((k, place + k - size // 2) for k in range(size))
        out.append(conv.bias + sum(conv.weight[:, :, k] @ rows[other] for k, other in window if other in places))
    return torch.stack(out)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("embedding", ["mlp", "gcn"])
@pytest.mark.parametrize("kernel_size", [1, 5])
def test_nlgnn_is_its_equation(embedding, kernel_size) -> None:
    data = small_graph()
    x = data.x.double()
    inputs = () if embedding == "mlp" else (normalized_adjacency(data.edge_index, N),)
    model = drawn(NLGNN(D, P, CLASSES, embedding=embedding, kernel_size=kernel_size))
    B = model.embedding(x, *inputs)
    s = B @ model.score.weight.T + model.score.bias
    order = sorted(range(N), key=lambda i: float(s[i, 0].detach()))
    rows = convolve(torch.relu(convolve((s * B)[order], model.convs[0])), model.convs[1])
    V = torch.stack([rows[order.index(node)] for node in range(N)])
    expected = torch.cat([B, V], dim=1) @ model.lin_out.weight.T + model.lin_out.bias
    for features in both_forms(x):
        assert_same(model, model(features, *inputs), expected)


@pytest.mark.parametrize("rows", [None, slice(3, 9), slice(20, 99), slice(-1, None)])
def test_the_learned_graph_is_the_window(rows) -> None:
    x = small_graph().x
    model = drawn(NLGNN(D, P, CLASSES, kernel_size=5))
    edges, weight = model.learned_graph(x, rows=rows)
    assert weight.equal(torch.ones(edges.shape[1]))
    place = torch.argsort(torch.argsort(model.score(model.embedding(x)).squeeze(1)))
    near = ((place[:, None] - place[None, :]).abs() <= 2).nonzero()
    wanted = near if rows is None else near[torch.isin(near[:, 0], torch.arange(N)[rows])]
    assert sorted(map(tuple, edges.T.tolist())) == sorted(map(tuple, wanted.tolist()))
