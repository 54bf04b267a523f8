"""Networks with a weight for each kind of edges: each is its equation, written out with a dense matrix by relation."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import RGCNConv

from gcnsl import InputError
from gcnsl.graph.edges import arcs_and_weights, edge_parts, edges_by_relation, simple_undirected
from gcnsl.nn import GAT, GCN, LINKX, SAGE, normalized_adjacency
from gcnsl.nn.config import GCNConfig, LINKXConfig, SAGEConfig
from gcnsl.nn.gcn import GraphConvolution
from gcnsl.nn.graph_model import FeatureLinear
from gcnsl.nn.sage import SAGEConvolution

from .cases import CLASSES, D, N, P, assert_same, both_forms, both_sides, drawn, small_graph

R = 3


def entries(weighted: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Edges, their kinds and perhaps weights: one edge is of two kinds, and one is listed twice."""
    source, target = small_graph().edge_index
    ends = small_graph().edge_index[:, (source <= target) | ((source + target) % 3 == 0)]
    ends = torch.cat([ends, ends[:, :2]], dim=1)
    kinds = torch.arange(ends.shape[1]) * 7 % R
    kinds[-2] = (kinds[0] + 1) % R
    kinds[-1] = kinds[1]
    return ends, kinds, (torch.arange(ends.shape[1]) % 40 + 8) / 16 if weighted else None


def graph(weighted: bool = False) -> Data:
    ends, kinds, weight = entries(weighted)
    n, ends = N, ends.int().numpy()
    data = Data(x=small_graph().x.double(), edge_index=torch.from_numpy(simple_undirected(*ends, n)[0]))
    data.update(arcs_and_weights(*ends, n, directed=True, weight=weight))
    data.update(edges_by_relation(data, ends, kinds.numpy(), R, None if weight is None else weight.numpy()))
    weights = {name: part.double() for name, part in edge_parts(data).items() if part.is_floating_point()}
    return data.update(weights)


def dense(weighted: bool, direction: str = "undirected") -> list[torch.Tensor]:
    """The A of each relation without loops, in units of the mean weight of all edges."""
    ends, kinds, weight = entries(weighted)
    A = torch.zeros(R, N, N, dtype=torch.double)
    for number, (u, v) in enumerate(ends.T.tolist()):
        A[kinds[number], u, v] = 1 if weight is None else A[kinds[number], u, v] + weight[number]
    W = A.sum(dim=0) if weighted else A.amax(dim=0)
    W = torch.maximum(W, W.T)
    A = {"undirected": torch.maximum(A, A.transpose(1, 2)), "out": A, "in": A.transpose(1, 2)}[direction]
    return [each.fill_diagonal_(0) for each in (A / W[W > 0].mean()).unbind()]


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("num_layers", "direction"), [(1, "undirected"), (3, "out"), (3, "in")])
def test_sage_is_its_equation(num_layers, direction, weighted) -> None:
    data, means = graph(weighted), [A / A.sum(1, keepdim=True).clamp(min=1e-9) for A in dense(weighted, direction)]
    model = drawn(SAGE(D, P, CLASSES, num_layers=num_layers, num_relations=R))
    _, *given = SAGEConfig(direction=direction).inputs(data, None, seed=0)
    H = data.x
    for layer, conv in enumerate(model.convs):
        H = torch.relu(H) if layer else H
        W = conv.lin_neighbours.weight.chunk(R)
        seen = sum(mean @ H @ W[r].T for r, mean in enumerate(means))
        H = H @ conv.lin_self.weight.T + conv.lin_self.bias + seen
    for features in both_forms(data.x):
        assert_same(model, model(features, *given), H)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("self_loops", "norm"), [(True, "symmetric"), (False, "symmetric"), (True, "row")])
def test_gcn_is_its_equation(self_loops, norm, weighted) -> None:
    data = graph(weighted)
    how = {"self_loops": self_loops, "adjacency_norm": norm}
    model = drawn(GCN(D, P, CLASSES, num_layers=3, residual=True, num_relations=R, **how))
    _, *given = GCNConfig(**how).inputs(data, None, seed=0)
    normal = {"symmetric": both_sides, "row": lambda A: A / A.sum(1, keepdim=True).clamp(min=1e-9)}[norm]
    operators = [torch.eye(N, dtype=torch.double)] * self_loops + [normal(A) for A in dense(weighted)]
    H = data.x
    for layer, conv in enumerate(model.convs):
        H = torch.relu(H) if layer else H
        W = conv.lin.weight.chunk(len(operators))
        H = sum(A @ H @ W[r].T for r, A in enumerate(operators)) + conv.bias + H @ model.skips[layer].weight.T
    for features in both_forms(data.x):
        assert_same(model, model(features, *given), H)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("direction", ["undirected", "out", "in"])
def test_linkx_is_its_equation(direction, weighted) -> None:
    data = graph(weighted)
    model = drawn(LINKX(D, P, CLASSES, num_nodes=N, num_layers=1, num_relations=R))
    _, links = LINKXConfig(direction=direction).inputs(data, None, seed=0)
    of_links, of_x, final = model.mlp_links.lins[0], model.mlp_x.lins[0], model.mlp_final.lins[0]
    W = of_links.weight.chunk(R, dim=1)
    H_A = sum(A @ W[r].T for r, A in enumerate(dense(weighted, direction))) + of_links.bias
    H_X = data.x @ of_x.weight.T + of_x.bias
    H = H_A @ model.mix_links.weight.T + H_X @ model.mix_x.weight.T + model.mix_x.bias
    expected = torch.relu(H + H_A + H_X) @ final.weight.T + final.bias
    for features in both_forms(data.x):
        assert_same(model, model(features, links), expected)


@pytest.mark.usefixtures("double")
def test_a_layer_of_sage_is_the_rgcn_of_torch_geometric() -> None:
    data, theirs = graph(), RGCNConv(D, P, R, aggr="mean").double()
    ours = drawn(SAGEConvolution(D, P, relations=R))
    _, *means = SAGEConfig().inputs(data, None, seed=0)
    with torch.no_grad():
        theirs.root.copy_(ours.lin_self.weight.T)
        theirs.bias.copy_(ours.lin_self.bias)
        theirs.weight.copy_(torch.stack([W.T for W in ours.lin_neighbours.weight.chunk(R)]))
    edge, kind = (data.edge_relations > 0).nonzero().T
    seen = data.edge_index.flip(0)[:, edge]  # theirs flow from the first to the second node
    proper = seen[0] != seen[1]
    torch.testing.assert_close(ours(data.x, *means), theirs(data.x, seen[:, proper], kind[proper]))


NETWORKS = [(GCN, {}), (GCN, {"blocks": 2}), (SAGE, {}), (SAGE, {"blocks": 2}), (LINKX, {"num_nodes": N})]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("network", "options"), NETWORKS, ids=str)
def test_a_call_takes_the_kind_of_each_edge(network, options, weighted) -> None:
    (ends, kinds, weight), data = entries(weighted), graph(weighted)
    data.x = data.x.float()
    weight = None if weight is None else weight.float()
    model = drawn(network(D, P, CLASSES, num_relations=R, **options))
    _, *given = model.config.inputs(data, None, seed=0)
    torch.testing.assert_close(model(data.x, ends, weight, edge_type=kinds), model(data.x, *given))
    assert not model(data.x, ends, weight, edge_type=kinds.roll(1)).equal(model(data.x, *given))
    for wrong in (None, kinds[1:], kinds + 1, kinds.float()):
        with pytest.raises(InputError, match=f"edge_type must be a torch.Tensor of {len(kinds)} whole numbers from 0"):
            model(data.x, ends, weight, edge_type=wrong)


@pytest.mark.parametrize(("network", "options"), [*NETWORKS, (GAT, {})], ids=str)
def test_a_model_for_one_kind_refuses_others(network, options) -> None:
    (ends, kinds, _), model = entries(weighted=False), network(D, P, CLASSES, **options)
    with pytest.raises(InputError, match="edge_type is given, but the model has one weight for all edges"):
        model(small_graph().x, ends, edge_type=kinds)


@pytest.mark.parametrize("layer", [GraphConvolution, SAGEConvolution])
def test_a_layer_of_one_relation_is_what_it_was_bit_for_bit(layer) -> None:
    x, A = torch.rand(N, D), normalized_adjacency(small_graph().edge_index, N)
    torch.manual_seed(0)
    conv = layer(D, P)
    torch.manual_seed(0)
    maps = (
        [FeatureLinear(D, P), FeatureLinear(D, P, bias=False)]
        if layer is SAGEConvolution
        else [FeatureLinear(D, P, bias=False)]
    )
    before = maps[0](x) + A @ maps[1](x) if layer is SAGEConvolution else A @ maps[0](x) + conv.bias
    assert conv(x, A).equal(before)
