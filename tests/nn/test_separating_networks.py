"""The networks that keep a node, its neighbours or directions apart: each is its equation, written out densely."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path
from torch.nn.functional import layer_norm

from gcnsl import InputError, load, synthetic
from gcnsl.nn import (
    ACMGCN,
    H2GCN,
    LINKX,
    NLGNN,
    ACMGCNConfig,
    DirGCN,
    DirGCNConfig,
    GeomGCN,
    GeomGCNConfig,
    H2GCNConfig,
    LINKXConfig,
    h2gcn,
    normalized_adjacency,
)
from gcnsl.nn.geom_gcn import divided_adjacency
from gcnsl.nn.h2gcn import two_hop_adjacency
from gcnsl.sparse import SparseMatrix
from gcnsl.structure import StructuralNeighbourhood, structural_neighbourhood

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
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("relu_first", [True, False])
@pytest.mark.parametrize("direction", ["undirected", "out"])
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


def test_the_structure_channel_needs_the_links() -> None:
    data = directed_graph()
    _, adjacency, _ = ACMGCNConfig().inputs(data, None, seed=0)
    with pytest.raises(InputError, match=r"links is None: give A, or build the model with structure=False"):
        ACMGCN(D, P, CLASSES, N)(data.x, adjacency)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("jump", "unit_rows"), [("max", True), ("cat", False)])
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


def test_a_graph_without_directions_is_seen_in_both() -> None:
    _, outwards, inwards = DirGCNConfig().inputs(small_graph(), None, seed=0)
    assert outwards.to_dense().equal(inwards.to_dense())


def divisions(found: StructuralNeighbourhood) -> list[np.ndarray]:
    """Â_r for the eight divisions and the nodes themselves."""
    A = np.zeros((9, N, N))
    for node, neighbour, division in zip(*found.edge_index.tolist(), found.division.tolist(), strict=True):
        A[division, node, neighbour] = 1
    A[8] = np.eye(N)
    degree = A.sum(axis=(0, 2))
    return [A[r] / np.sqrt(degree[:, None] * degree[None, :]) for r in range(9)]


@pytest.mark.usefixtures("double")
def test_geom_gcn_is_its_equation() -> None:
    data = small_graph()
    x, found = data.x.double(), structural_neighbourhood(data.edge_index, N)
    model = drawn(GeomGCN(D, P, CLASSES))
    w, A = weights(model), divisions(found)
    W1, W2 = (np.split(w[f"{layer}.lin.weight"], 9, axis=1) for layer in ("first", "second"))
    H = np.maximum(np.concatenate([A[r] @ x.numpy() @ W1[r] for r in range(9)], axis=1), 0)
    expected = sum(A[r] @ H @ W2[r] for r in range(9)) / 9
    adjacency = divided_adjacency(found, N)
    for features in both_forms(x):
        logits = model(features, adjacency)
        np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


def test_maps_of_divisions_are_drawn_each_by_itself() -> None:
    torch.manual_seed(0)
    weight = GeomGCN(D, P, CLASSES).first.lin.weight
    limit = np.sqrt(6 / (D + P))
    assert 0.9 * limit < weight.abs().max() <= limit


def test_neighbourhoods_come_back_from_their_state() -> None:
    data, config = small_graph(), GeomGCNConfig()
    found = structural_neighbourhood(data.edge_index, N)
    again = config.from_state(*found.state(), data, seed=0)
    before, after = (config.inputs(data, each, seed=0)[1] for each in (found, again))
    assert before.to_dense().equal(after.to_dense())


@pytest.mark.parametrize("embedding", ["isomap", "struc2vec"])
def test_they_are_computed_as_the_configuration_says(embedding) -> None:
    data = small_graph()
    found = GeomGCNConfig(embedding=embedding).precompute(data, seed=0)
    expected = structural_neighbourhood(data.edge_index, N, embedding=embedding)
    assert found.edge_index.equal(expected.edge_index)
    assert found.division.equal(expected.division)


def test_a_graph_of_ones_own_has_no_published_ones() -> None:
    data = small_graph()
    data.name = "cora"  # a file may have any name
    with pytest.raises(InputError, match=r"source\('published'\) .*use 'computed'"):
        GeomGCNConfig(source="published").precompute(data, seed=0)


def test_those_of_a_benchmark_are_read(data_root) -> None:
    data = load("texas", root=data_root)
    found = GeomGCNConfig(source="published", embedding="poincare").precompute(data, seed=0, root=data_root)
    assert "published" in found.how
    assert int(found.edge_index.max()) < data.num_nodes


def hops(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Who is at distance 1, and who at distance 2."""
    distance = shortest_path(A, unweighted=True)
    return (distance == 1).astype(float), (distance == 2).astype(float)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("relu", [True, False])
def test_h2gcn_is_its_equation(rounds, relu) -> None:
    data = small_graph()
    x = data.x.double()
    model = drawn(H2GCN(D, P, CLASSES, rounds=rounds, relu=relu))
    w = weights(model)
    A1, A2 = (symmetric(hop) for hop in hops(adjacency_matrix(data)))
    R = [x.numpy() @ w["lin_embed.weight"]]
    if relu:
        R[0] = np.maximum(R[0], 0)
    for k in range(rounds):
        R.append(np.concatenate([A1 @ R[k], A2 @ R[k]], axis=1))
    expected = np.concatenate(R, axis=1) @ w["lin_out.weight"]
    _, *adjacencies = H2GCNConfig().inputs(data, None, seed=0)
    for features in both_forms(x):
        logits = model(features, *adjacencies)
        np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


@given(st.integers(8, 40), st.floats(0.5, 3), st.integers(0, 99), st.sampled_from([1, 50, 1 << 22]))
def test_two_hops_are_distance_two(n, degree, seed, block) -> None:
    edges = synthetic(n=n, h=0.5, classes=2, degree=degree, features=8, seed=seed).edge_index
    edges = torch.cat([edges, torch.tensor([[1], [1]])], dim=1)
    A = np.zeros((n, n))
    A[tuple(edges.numpy())] = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2gcn, "BLOCK_ENTRIES", block)
        found = two_hop_adjacency(edges, n)
    assert isinstance(found, torch.Tensor) == ((hops(A)[1] > 0).mean() > 0.15)
    dense = found if isinstance(found, torch.Tensor) else found.to_dense()
    np.testing.assert_allclose(dense.numpy(), symmetric(hops(A)[1]), rtol=1e-6)


def star(leaves: int) -> torch.Tensor:
    centre, others = torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)
    return torch.stack([torch.cat([centre, others]), torch.cat([others, centre])])


def test_too_many_pairs_are_refused_before_any_is_formed() -> None:
    with pytest.raises(
        InputError,
        match=r"H2GCN joins .* up to 10,000,100,000 pairs, which take 37 GiB, and at most 2 are allowed; use another",
    ):
        two_hop_adjacency(star(100_000), 100_001)


MEMORY_PROBE = """
import resource, torch
from gcnsl.nn.h2gcn import two_hop_adjacency
from tests.nn.test_separating_networks import star
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert two_hop_adjacency(star(4_000), 4_001).shape == (4_001, 4_001)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_that_of_the_result() -> None:
    """A star of 4,000 nodes has 16 million pairs: 61 MiB."""
    probe = subprocess.run([sys.executable, "-c", MEMORY_PROBE], capture_output=True, text=True, check=True)
    assert int(probe.stdout) < 200 * 1024


def test_a_clique_has_many_walks_and_no_pairs() -> None:
    n = 300
    edges = torch.tensor([[i, j] for i in range(n) for j in range(n) if i != j]).T
    found = two_hop_adjacency(edges, n)
    assert found.to_dense().eq(0).all()


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
@pytest.mark.parametrize("layers", [(1, 1, 1), (2, 3, 4)])
@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
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


def convolve(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A one-dimensional convolution along the rows, a window of zeros beyond either end."""
    size = weight.shape[2]
    out = np.tile(bias, (len(rows), 1))
    for place in range(len(rows)):
        for k in range(size):
            neighbour = place + k - size // 2
            if 0 <= neighbour < len(rows):
                out[place] += weight[:, :, k] @ rows[neighbour]
    return out


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("embedding", ["mlp", "gcn"])
@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_nlgnn_is_its_equation(embedding, kernel_size) -> None:
    data = small_graph()
    x = data.x.double()
    inputs = () if embedding == "mlp" else (normalized_adjacency(data.edge_index, N),)
    model = drawn(NLGNN(D, P, CLASSES, embedding=embedding, kernel_size=kernel_size))
    w = weights(model)
    B = model.embedding(x, *inputs).detach().numpy()
    s = B @ w["score.weight"] + w["score.bias"]
    order = sorted(range(N), key=lambda i: s[i, 0])
    rows = np.stack([s[i] * B[i] for i in order])
    rows = np.maximum(convolve(rows, w["convs.0.weight"], w["convs.0.bias"]), 0)
    rows = convolve(rows, w["convs.1.weight"], w["convs.1.bias"])
    V = np.empty_like(rows)
    for place, node in enumerate(order):
        V[node] = rows[place]
    expected = np.concatenate([B, V], axis=1) @ w["lin_out.weight"] + w["lin_out.bias"]
    for features in both_forms(x):
        logits = model(features, *inputs)
        np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("embedding", ["mlp", "gcn"])
def test_only_an_mlp_drops_features(embedding) -> None:
    data, seen = small_graph(), []
    model = NLGNN(D, P, CLASSES, embedding=embedding).train()
    first = model.embedding.lins[0] if embedding == "mlp" else model.embedding.convs[0]
    first.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(data.x, *(() if embedding == "mlp" else (normalized_adjacency(data.edge_index, N),)))
    assert seen[0].equal(data.x) == (embedding == "gcn")


def test_each_dropout_has_its_place() -> None:
    data = small_graph()
    inputs = data.x, normalized_adjacency(data.edge_index, N)
    for rates, changes in (((0.0, 0.0), False), ((0.5, 0.0), True), ((0.0, 0.5), True)):
        model = drawn(NLGNN(D, P, CLASSES, embedding="gcn", dropout=rates[0], conv_dropout=rates[1])).train()
        assert model(*inputs).equal(model(*inputs)) != changes
        assert model.embedding(*inputs).equal(model.embedding(*inputs)) != (rates[0] > 0)


def test_the_learned_graph_is_the_window() -> None:
    x = small_graph().x
    model = drawn(NLGNN(D, P, CLASSES, kernel_size=5))
    edges, weight = model.learned_graph(x)
    assert weight.equal(torch.ones(edges.shape[1]))
    score = model.score(model.embedding(x)).squeeze(1)
    place = torch.argsort(torch.argsort(score))
    apart = (place[:, None] - place[None, :]).abs()
    assert sorted(map(tuple, edges.T.tolist())) == sorted(map(tuple, (apart <= 2).nonzero().tolist()))
    assert model.learns_graph


@pytest.mark.parametrize("rows", [slice(3, 9), slice(20, 99), slice(-1, None)])
def test_rows_of_the_learned_graph_are_those_of_the_whole(rows) -> None:
    x = small_graph().x
    model = drawn(NLGNN(D, P, CLASSES, kernel_size=5))
    whole = model.learned_graph(x)[0]
    wanted = torch.isin(whole[0], torch.arange(N)[rows])
    assert model.learned_graph(x, rows=rows)[0].equal(whole[:, wanted])


def test_missing_adjacency_is_named() -> None:
    with pytest.raises(InputError, match="adjacency is None: give Â"):
        NLGNN(D, P, CLASSES, embedding="gcn")(small_graph().x)
