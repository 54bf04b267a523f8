import pytest
import torch
from torch_geometric.nn import SAGEConv

from gcnsl.nn import SAGE, SAGEConfig
from gcnsl.nn.sage import SAGEConvolution

from .cases import (
    CLASSES,
    D,
    P,
    assert_same,
    batch_normalised,
    both_forms,
    dense_adjacency,
    directed_graph,
    drawn,
    row_means,
    with_statistics,
)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
def test_is_the_equation(num_layers, direction) -> None:
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


@pytest.mark.usefixtures("double")
def test_layer_is_torch_geometrics() -> None:
    data = directed_graph()
    ours, theirs = drawn(SAGEConvolution(D, P)), SAGEConv(D, P)
    state = {"lin_l.weight": ours.lin_neighbours.weight, "lin_l.bias": ours.lin_self.bias}
    theirs.load_state_dict(state | {"lin_r.weight": ours.lin_self.weight})
    source, target = data.arc_index[:, data.arc_index[0] != data.arc_index[1]]
    _, mean = SAGEConfig(direction="out").inputs(data, None, seed=0)
    torch.testing.assert_close(ours(data.x.double(), mean), theirs(data.x.double(), torch.stack([target, source])))


def test_features_are_dropped_unless_told_otherwise() -> None:
    data = directed_graph()
    _, mean = SAGEConfig().inputs(data, None, seed=0)
    for dropped in (True, False):
        model = drawn(SAGE(D, P, CLASSES, num_layers=1, dropout=0.5, drop_features=dropped)).train()
        assert model(data.x, mean).equal(model(data.x, mean)) == (not dropped)
