import pytest
import torch
from torch_geometric.nn import DirGNNConv, GCNConv

from gcnsl.nn import DirGCN, DirGCNConfig
from gcnsl.nn.dir_gcn import DirectedConvolution

from .cases import (
    CLASSES,
    D,
    N,
    P,
    assert_same,
    both_forms,
    both_sides,
    dense_adjacency,
    directed_graph,
    drawn,
    small_graph,
)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("jump", "unit_rows"), [("max", True), ("cat", False)])
def test_is_the_equation(alpha, jump, unit_rows) -> None:
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
def test_layer_is_torch_geometrics_but_for_the_degrees() -> None:
    data = directed_graph()
    ours = drawn(DirectedConvolution(D, P, 0.3))
    theirs = DirGNNConv(GCNConv(D, P), alpha=0.3, root_weight=False)
    for name, conv in ours.convs.items():
        getattr(theirs, f"conv_{name}").load_state_dict(conv.state_dict())
    arcs = data.arc_index[:, data.arc_index[0] != data.arc_index[1]]
    _, *adjacencies = DirGCNConfig().inputs(data, None, seed=0)
    rows, columns = (torch.bincount(end, minlength=N).clamp(min=1).double().sqrt() for end in arcs)
    weight = 1 / (rows[arcs[0]] * columns[arcs[1]])
    for conv in (theirs.conv_in, theirs.conv_out):
        conv.normalize = False
    expected = 0.3 * theirs.conv_out(data.x.double(), arcs.flip(0), weight)
    expected = expected + 0.7 * theirs.conv_in(data.x.double(), arcs, weight)
    torch.testing.assert_close(ours(data.x.double(), *adjacencies), expected)


def test_a_graph_without_directions_is_seen_in_both() -> None:
    _, outwards, inwards = DirGCNConfig().inputs(small_graph(), None, seed=0)
    assert outwards.to_dense().equal(inwards.to_dense())
