import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from gcnsl.nn import GCN, GCNConfig, normalized_adjacency
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
    drawn,
    small_graph,
    symmetric,
    weights,
    with_statistics,
)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("num_layers", [1, 2, 5])
def test_is_the_equation(num_layers) -> None:
    data = small_graph()
    x = data.x.double()
    model = drawn(GCN(D, P, CLASSES, num_layers=num_layers))
    w, H, A_hat = weights(model), x.numpy(), symmetric(adjacency_matrix(data) + np.eye(N))
    for layer in range(num_layers):
        H = np.maximum(H, 0) if layer else H
        H = A_hat @ H @ w[f"convs.{layer}.lin.weight"] + w[f"convs.{layer}.bias"]
    for features in both_forms(x):
        logits = model(features, normalized_adjacency(data.edge_index, N))
        np.testing.assert_allclose(logits.detach().numpy(), H, rtol=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
@pytest.mark.parametrize("num_layers", [1, 4])
def test_is_the_equation_with_skips_and_norms(norm, num_layers) -> None:
    data = small_graph()
    x, A_hat = data.x.double(), both_sides(dense_adjacency(data, loops=True))
    model = with_statistics(drawn(GCN(D, P, CLASSES, num_layers=num_layers, residual=True, norm=norm)))
    H = x
    for layer, (conv, skip) in enumerate(zip(model.convs, model.skips, strict=True)):
        if layer and norm == "batch":
            H = batch_normalised(H, model.norms[layer - 1])
        elif layer and norm == "layer":
            scale, shift = model.norms[layer - 1].weight, model.norms[layer - 1].bias
            spread = (H.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
            H = (H - H.mean(1, keepdim=True)) / spread * scale + shift
        H = torch.relu(H) if layer else H
        H = A_hat @ H @ conv.lin.weight.T + conv.bias + H @ skip.weight.T
    for features in both_forms(x):
        assert_same(model, model(features, normalized_adjacency(data.edge_index, N)), H)


def test_features_are_dropped_unless_told_otherwise() -> None:
    data = small_graph()
    adjacency = normalized_adjacency(data.edge_index, N)
    for dropped in (True, False):
        model = drawn(GCN(D, P, CLASSES, num_layers=1, dropout=0.5, drop_features=dropped)).train()
        assert model(data.x, adjacency).equal(model(data.x, adjacency)) == (not dropped)


@pytest.mark.usefixtures("double")
def test_layer_is_torch_geometrics() -> None:
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
