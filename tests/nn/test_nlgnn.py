import numpy as np
import pytest
import torch

from gcnsl import InputError
from gcnsl.nn import NLGNN, normalized_adjacency

from .cases import CLASSES, D, N, P, both_forms, drawn, small_graph, weights


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
def test_is_the_equation(embedding, kernel_size) -> None:
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
