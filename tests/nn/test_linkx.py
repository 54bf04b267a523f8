import pytest
import torch
from torch_geometric import nn as theirs_nn

from gcnsl.nn import LINKX, LINKXConfig

from .cases import (
    CLASSES,
    D,
    N,
    P,
    assert_same,
    batch_normalised,
    both_forms,
    dense_adjacency,
    directed_graph,
    drawn,
    with_statistics,
)


def perceptron(x: torch.Tensor, mlp) -> torch.Tensor:
    for layer, lin in enumerate(mlp.lins):
        x = batch_normalised(torch.relu(x), mlp.norms[layer - 1]) if layer else x
        x = x @ lin.weight.T + lin.bias
    return x


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("layers", [(1, 1, 1), (2, 3, 4)])
@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
def test_is_the_equation(layers, direction) -> None:
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


@pytest.mark.usefixtures("double")
def test_is_torch_geometrics() -> None:
    data = directed_graph()
    ours = LINKX(D, P, CLASSES, N, link_layers=2, feature_layers=3, num_layers=2)
    ours = with_statistics(drawn(ours))
    theirs = theirs_nn.LINKX(N, D, P, CLASSES, num_layers=2, num_edge_layers=2, num_node_layers=3).eval()
    with torch.no_grad():
        first, second = ours.mlp_links.lins
        theirs.edge_lin.weight.copy_(first.weight.T)
        theirs.edge_lin.bias.copy_(first.bias)
        theirs.edge_mlp.lins[0].load_state_dict(second.state_dict())
        theirs.edge_norm.load_state_dict(ours.mlp_links.norms[0].state_dict())
        for mine, other in ((ours.mlp_x, theirs.node_mlp), (ours.mlp_final, theirs.final_mlp)):
            for lin, same in zip(mine.lins, other.lins, strict=True):
                same.load_state_dict(lin.state_dict())
            for norm, same in zip(mine.norms, other.norms, strict=False):
                same.module.load_state_dict(norm.state_dict())
        theirs.cat_lin1.weight.copy_(ours.mix_links.weight)
        theirs.cat_lin1.bias.zero_()
        theirs.cat_lin2.load_state_dict(ours.mix_x.state_dict())
    arcs = data.arc_index[:, data.arc_index[0] != data.arc_index[1]]
    _, links = LINKXConfig().inputs(data, None, seed=0)
    torch.testing.assert_close(ours(data.x.double(), links), theirs(data.x.double(), arcs.flip(0)))
