"""A PyTorch Geometric user's first hour: our graphs in its loaders and transforms, its graphs in our models."""

import copy
import pickle
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer, fidelity
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.loader import DataLoader, NeighborLoader, RandomNodeLoader
from torch_geometric.nn import GCNConv, Sequential, summary
from torch_geometric.transforms import (
    Compose,
    LargestConnectedComponents,
    NormalizeFeatures,
    RandomNodeSplit,
    RemoveIsolatedNodes,
    ToSparseTensor,
    ToUndirected,
)
from torch_geometric.utils import to_networkx, to_torch_csc_tensor, to_undirected

import gcnsl
from gcnsl import AddSpectralFeatures, InputError, NodeClassifier, from_arrays, from_data, nn
from gcnsl.graph import GraphWarning
from gcnsl.methods import METHODS

from .nn.cases import drawn

N, D, CLASSES = 40, 12, 3
MODELS = [nn.MLP, nn.GCN, nn.SAGE, nn.GAT, nn.MixHop, nn.H2GCN, nn.GeomGCN, nn.NLGNN, nn.GPRGNN, nn.FSGNN]
MODELS += [nn.ACMGCN, nn.DirGCN, nn.LINKX, nn.GCNSL, nn.GCNSLPlus]
EXTRA = {"LINKX": (N,), "GCNSLPlus": (N,)}
"""What further arguments a model wants; ``ACMGCN`` may have the number of nodes, too."""
every_model = pytest.mark.parametrize("name", [model.__name__ for model in MODELS])


def plain_data(seed: int = 0) -> Data:
    """What a user of PyTorch Geometric has."""
    generator = torch.manual_seed(seed)
    y = torch.arange(N) % CLASSES
    x = torch.rand(N, D, generator=generator) + torch.eye(D)[y]
    edge_index = torch.randint(N - 1, (2, 90), generator=generator)  # the last node is isolated
    data = Data(x=x, edge_index=edge_index, y=y, edge_weight=torch.rand(90, generator=generator) + 0.1)
    return Compose([ToUndirected(reduce="max"), NormalizeFeatures(), RandomNodeSplit(num_val=5, num_test=5)])(data)


def model(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return getattr(nn, name)(D, 8, CLASSES, *EXTRA.get(name, ()))


@pytest.fixture(autouse=True, scope="module")
def one_thread(single_thread):
    """All work here is on small matrices."""


# Graphs


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A directed graph with weights, ids, labels and columns of several kinds, with gaps."""
    generator = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": [f"n{i}" for i in range(N)], "label": np.array(["ash", "oak"])[np.arange(N) % 2]})
    nodes["town"] = np.where(np.arange(N) % 7 == 2, None, np.array(["oslo", "rome", "bern"])[np.arange(N) % 3])
    nodes["age"] = np.where(np.arange(N) % 5 == 1, np.nan, np.arange(N))
    nodes["split"] = np.array(["train", "train", "val", "test"])[np.arange(N) % 4]
    ends = generator.integers(0, N, (120, 2))
    edges = pd.DataFrame(np.array(nodes["id"])[ends], columns=["source", "target"])
    return nodes, edges.assign(weight=generator.integers(1, 5, len(ends)))


def assert_same_graph(one: Data, other: Data) -> None:
    """All that a graph says of its nodes and edges is the same, but not how it was found."""
    for key in (
        "x",
        "y",
        "edge_index",
        "edge_weight",
        "arc_index",
        "arc_weight",
        "train_mask",
        "val_mask",
        "test_mask",
    ):
        assert (key in one) == (key in other)
        assert key not in one or one[key].equal(other[key]), key
    for key in ("node_ids", "class_names", "feature_names"):
        assert list(one.get(key, ())) == list(other.get(key, ())), key
    one.validate()


def test_the_introduction_by_example_of_pyg() -> None:
    data = gcnsl.load("debian", runs=1)
    torch.manual_seed(0)
    first, second = GCNConv(data.num_node_features, 16), GCNConv(16, data.num_classes)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.02, weight_decay=5e-4)
    for _ in range(15):
        optimizer.zero_grad()
        out = second(first(data.x, data.edge_index).relu(), data.edge_index)
        cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    assert (out.argmax(dim=1)[data.test_mask] == data.y[data.test_mask]).float().mean() > 0.5
    assert gcnsl.load("debian", runs=3).train_mask.shape == (data.num_nodes, 3)
    assert data.is_undirected()
    assert data.y[data.node_ids.get_loc("0ad")] == data.class_names.index("games")


@pytest.mark.parametrize("form", ["mask", "numbers", "any order"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_subgraph_is_the_graph_of_these_rows(form, directed) -> None:
    nodes, edges = tables()
    whole = gcnsl.from_tables(nodes, edges, directed=directed)
    kept = np.flatnonzero(np.arange(N) % 3 != 1)
    kept = np.random.default_rng(1).permutation(kept) if form == "any order" else kept
    subset = torch.from_numpy(kept)
    part = whole.subgraph(torch.isin(torch.arange(N), subset) if form == "mask" else subset)
    among = edges["source"].isin(nodes["id"][kept]) & edges["target"].isin(nodes["id"][kept])
    encoder, options = whole.encoder, {"directed": directed}
    assert_same_graph(part, gcnsl.from_tables(nodes.iloc[kept], edges[among], encoder=encoder, **options))
    assert part.edge_report.edges == gcnsl.from_tables(nodes.iloc[kept], edges[among], **options).edge_report.edges
    again = NodeClassifier("mlp", epochs=1).fit_graph(part)
    expected = NodeClassifier("mlp", epochs=1).fit_graph(gcnsl.from_tables(nodes.iloc[kept], edges[among], **options))
    assert (again.predict_proba() == expected.predict_proba()).all(), "its columns are encoded anew"
    assert len(whole.node_ids) == N, "the whole is as it was"


def test_copies_batches_and_loaders() -> None:
    nodes, edges = tables()
    whole = gcnsl.from_tables(nodes, edges, directed=True)
    for other in (
        whole.clone(),
        copy.deepcopy(whole),
        whole.to("cpu"),
        pickle.loads(pickle.dumps(whole)),
        copy.copy(whole),
    ):
        assert_same_graph(other, whole)
    parts = list(RandomNodeLoader(whole, num_parts=3))
    assert sum(part.num_nodes for part in parts) == N
    for part in parts:
        places = torch.from_numpy(whole.node_ids.get_indexer(part.node_ids))
        assert part.x.equal(whole.x[places])
    batch = next(iter(DataLoader([whole, whole], batch_size=2)))
    assert batch.arc_index[:, batch.arc_index.shape[1] // 2 :].equal(whole.arc_index + N)
    assert str(batch)
    assert batch.num_classes == whole.num_classes == 2
    graph = to_networkx(whole, node_attrs=["y"], to_undirected=True)
    assert graph.number_of_edges() == whole.edge_report.edges


@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without a 'pyg-lib':UserWarning")
def test_neighbors_can_be_sampled(monkeypatch) -> None:
    """With a stand-in for the extra of PyTorch Geometric that samples, which is compiled."""

    def one_hop(pointers, sources, seeds, *_):
        places = [torch.arange(*pointers[seed : seed + 2].tolist()) for seed in seeds]
        edges = torch.cat(places)
        ends = [sources[edges], seeds.repeat_interleave(torch.tensor([len(place) for place in places]))]
        nodes = torch.cat([seeds, ends[0][~torch.isin(ends[0], seeds)].unique()])
        number = torch.empty(N, dtype=torch.long).index_copy(0, nodes, torch.arange(len(nodes)))
        return nodes, number[ends[0]], number[ends[1]], edges

    monkeypatch.setattr("torch_geometric.typing.WITH_TORCH_SPARSE", True)
    monkeypatch.setattr(torch.ops, "torch_sparse", SimpleNamespace(neighbor_sample=one_hop))
    whole = gcnsl.from_tables(*tables(), directed=True)
    model_of = nn.GCN(whole.num_node_features, 4, whole.num_classes, num_layers=1, adjacency_norm="row").eval()
    out = model_of(whole.x, whole.edge_index)
    for batch in NeighborLoader(whole, num_neighbors=[-1], batch_size=6, input_nodes=whole.train_mask):
        assert batch.x.equal(whole.x[batch.n_id])
        assert batch.train_mask[: batch.batch_size].all()
        assert whole.node_ids[batch.n_id.numpy()].tolist() == [f"n{number}" for number in batch.n_id]
        found = model_of(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(found, out[batch.input_id])
    with pytest.warns(GraphWarning, match="the directions are left out"):
        assert NodeClassifier("mlp", epochs=1).fit_graph(batch).predict().shape == (batch.num_nodes,)


def test_what_is_printed_fits_a_line_and_a_screen() -> None:
    nodes, edges = tables()
    wide = nodes.join(pd.DataFrame(np.eye(N, 400, dtype=int)).add_prefix("a column with a long name "))
    for data in (gcnsl.from_tables(wide, edges, directed=True), gcnsl.load("debian")):
        assert "\n" not in repr(data)
        assert len(repr(data)) < 240
        lines = str(data).splitlines()
        assert len(lines) < 25
        assert max(map(len, lines)) < 110
        assert f"{data.num_nodes:,} nodes, {data.edge_report.edges:,} edges" in lines[0]
        fewer = str(data.edge_subgraph(torch.arange(10)))
        assert ", 10 edges" in fewer
        assert "edge_report" not in fewer


def test_what_a_user_changes_is_what_is_learned_from() -> None:
    nodes, edges = tables()
    whole = gcnsl.from_tables(nodes, edges, directed=True)
    fitted = NodeClassifier("dir-gcn", epochs=1).fit_graph(whole)
    assert (
        NodeClassifier("dir-gcn", epochs=1).fit_graph(from_data(whole)).predict_proba() == fitted.predict_proba()
    ).all()
    more = Compose([NormalizeFeatures(), AddSpectralFeatures(2, attr_name=None)])(whole.clone())
    assert NodeClassifier("mlp", epochs=1).fit_graph(more).graph_.x.equal(more.x)
    fewer = RemoveIsolatedNodes()(LargestConnectedComponents()(whole.clone()))
    assert NodeClassifier("mlp", epochs=1).fit_graph(fewer).predict().shape == (fewer.num_nodes,)
    one_hot = gcnsl.from_tables(nodes[["id", "label"]].join(pd.DataFrame(np.eye(N)).add_prefix("f")), edges[:4])
    assert len(one_hot.feature_names) == N, "as many as nodes"
    assert RemoveIsolatedNodes()(one_hot).x.shape[1] == N
    changed = whole.clone()
    changed.edge_index, changed.edge_weight = changed.edge_index[:, ::2], changed.edge_weight[::2]
    with pytest.warns(GraphWarning, match="edge_index was changed, but not arc_index: the directions are left out"):
        graph = NodeClassifier("mlp", epochs=1).fit_graph(changed).graph_
    assert graph.edge_index.equal(from_arrays(changed.x, changed.edge_index).edge_index)
    relabelled = whole.clone()
    relabelled.y[0] = -1
    with pytest.raises(InputError, match=r"train_mask\[0\] selects a node without a label"):
        NodeClassifier("mlp").fit_graph(relabelled)


def as_of(kind: str) -> Data:
    """A plain graph in a form that PyG and its datasets know."""
    data = plain_data()
    if kind == "adj_t":
        return ToSparseTensor(attr="edge_weight", layout=torch.sparse_csr)(data)
    if kind == "column of labels":
        data.y = data.y[:, None]
    if kind == "splits":
        data.train_mask, data.val_mask, data.test_mask = (
            torch.stack([mask] * 2, dim=1) for mask in (data.train_mask, data.val_mask, data.test_mask)
        )
    if kind == "sparse":
        data.x = data.x.to_sparse_csr()
    if kind == "double":
        data.x = data.x.double()
    return data


@pytest.mark.parametrize("kind", ["adj_t", "column of labels", "splits", "sparse", "double"])
def test_any_data_can_be_fitted(kind) -> None:
    options = {"epochs": 3, "hidden_channels": 8, "dropout": 0.0, "standardize": "never"}
    expected = NodeClassifier("gcn", **options).fit_graph(plain_data())
    model_of = NodeClassifier("gcn", **options).fit_graph(as_of(kind))
    assert model_of.predict_proba() == pytest.approx(expected.predict_proba(), abs=1e-4)
    assert model_of.classes_.tolist() == [0, 1, 2]


# Models


@every_model
def test_it_learns_in_a_loop_of_ones_own(name) -> None:
    data, net = plain_data(), model(name)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        out = net(data.x, data.edge_index, data.edge_weight)
        loss = cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert out.shape == (N, CLASSES)
    assert min(losses[5:]) < losses[0]


@every_model
def test_edges_and_prepared_inputs_give_the_same(name) -> None:
    data, net = plain_data(), drawn(model(name))
    out = net(data.x, data.edge_index)
    assert net(x=data.x, edge_index=data.edge_index).equal(out)
    inputs, again = (net.prepared(data.x, data.edge_index) for _ in range(2))
    assert net(*inputs).equal(out)
    assert all(one is other for one, other in zip(inputs, again, strict=True)), "what edges tell is kept"
    for sparse in (data.x.to_sparse_csr(), data.x.to_sparse()):
        torch.testing.assert_close(net(sparse, data.edge_index), out, rtol=1e-4, atol=1e-4)
    double = net.double()(data.x.double(), data.edge_index, edge_weight=None)
    torch.testing.assert_close(double.float(), out, rtol=1e-3, atol=1e-3)


@every_model
def test_it_can_be_trained_under_autocast(name) -> None:
    data, net = plain_data(), model(name).eval()
    out = net(data.x, data.edge_index).detach()
    near = {"rtol": 0.05, "atol": 0.2 * float(out.abs().max())}  # A* of GCN-SL differs in pairs with about ε
    for x in (data.x, data.x.to_sparse_csr()):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = net(x, data.edge_index)
        torch.testing.assert_close(mixed.float(), out, **near)
        mixed.sum().backward()


@every_model
def test_other_edges_or_weights_are_noticed(name) -> None:
    data, net = plain_data(), drawn(model(name))
    reads, weighs = name != "MLP", "weights" in net.config.uses
    before, weighted = net(data.x, data.edge_index), net(data.x, data.edge_index, data.edge_weight)
    assert before.equal(weighted) == (not weighs)
    data.edge_index[1, :40] = (data.edge_index[1, :40] + 1) % N  # in place
    assert net(data.x, data.edge_index).equal(before) == (not reads or name == "NLGNN")
    assert net(data.x, torch.empty(2, 0, dtype=torch.long)).isfinite().all()


@every_model
def test_it_is_what_the_estimator_trains(name) -> None:
    method = next(each for each in METHODS.values() if each.config.model.endswith(f":{name}"))
    config = method.config.changed(feature_norm="none")
    data = plain_data()
    graph = from_arrays(data.x, data.edge_index, directed=True, edge_weight=data.edge_weight)
    if name == "GCNSL":
        config = config.changed(use_spectral=False, feature_shift=0.0)
    net = drawn(config.build(D, CLASSES, N))
    inputs = config.inputs(graph, config.precompute(graph, seed=0), seed=0)
    torch.testing.assert_close(net(data.x, data.edge_index, data.edge_weight), net(*inputs), rtol=1e-4, atol=1e-4)


@every_model
def test_copies_and_pickles_hold_weights_only(name) -> None:
    data, net = plain_data(), model(name).eval()
    size = len(pickle.dumps(net))
    with torch.inference_mode():
        net(data.x, data.edge_index)
    out = net(data.x, data.edge_index)
    out.sum().backward()  # what inference mode has kept serves in training
    net.zero_grad()
    assert len(pickle.dumps(net)) <= size + 1000
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other(data.x, data.edge_index).equal(out)
    fresh = model(name).eval()
    fresh.reset_parameters()
    fresh.load_state_dict(net.state_dict())
    assert fresh(data.x, data.edge_index).equal(out)


@every_model
def test_summary_and_explainer_work(name, monkeypatch) -> None:
    data, net = plain_data(), model(name).eval()
    tables = SimpleNamespace(tabulate=lambda rows, **_: str(rows))  # which PyTorch Geometric does not require
    monkeypatch.setitem(sys.modules, "tabulate", tables)
    assert name in summary(net, data.x, data.edge_index)
    assert explainer_of(net, node_mask_type="attributes")(data.x, data.edge_index, index=3).node_mask.shape == (N, D)


def explainer_of(net: torch.nn.Module, **masks: str) -> Explainer:
    how = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    return Explainer(net, GNNExplainer(epochs=2), explanation_type="model", model_config=how, **masks)


@every_model
def test_an_explainer_puts_masks_on_edges(name) -> None:
    data, net = plain_data(), drawn(model(name))
    x, edges, weight = data.x, data.edge_index, data.edge_weight
    explainer, before = explainer_of(net, edge_mask_type="object"), net(x, edges, weight)
    if not net.reads_edges:
        with pytest.raises(ValueError, match="make sure that edges are used"):
            explainer(x, edges, edge_weight=weight)
        return
    found = explainer(x, edges, edge_weight=weight)
    assert found.edge_mask.shape == weight.shape
    assert (found.edge_mask > 0).float().mean() > 0.8
    assert (found.edge_mask[edges[0] == edges[1]] == 0).all(), "as in PyTorch Geometric, loops have no mask"
    assert min(fidelity(explainer, found)) >= 0
    masked = partial(explainer.get_masked_prediction, x, edges, edge_weight=weight)
    torch.testing.assert_close(masked(edge_mask=torch.ones(len(weight))), before)
    assert not masked(edge_mask=torch.zeros(len(weight))).allclose(before)
    assert net(x, edges, weight).equal(before), "explainers leave nothing behind"
    assert net.state_dict().keys() == model(name).state_dict().keys()


def test_masks_of_edges_are_those_of_pyg() -> None:
    data, ours = plain_data(), nn.GCN(D, 8, CLASSES).eval()
    layers = (GCNConv(D, 8), "x, edges -> x"), torch.nn.ReLU(), (GCNConv(8, CLASSES), "x, edges -> x")
    theirs = Sequential("x, edges", [*layers])
    for conv, like in zip(ours.convs, (theirs[0], theirs[2]), strict=True):
        like.load_state_dict(conv.state_dict())
    mask = to_undirected(data.edge_index, torch.rand(data.num_edges), reduce="mean")[1]
    outputs = []
    for net in (ours, theirs):
        set_masks(net, mask.clone().requires_grad_(), data.edge_index)
        outputs.append(net(data.x, data.edge_index))
        clear_masks(net)
    torch.testing.assert_close(*outputs)


def test_a_layer_of_pyg_gives_the_same() -> None:
    data, ours, theirs = plain_data(), nn.GCN(D, 8, CLASSES, num_layers=1).eval(), GCNConv(D, CLASSES)
    theirs.load_state_dict(ours.convs[0].state_dict())
    torch.testing.assert_close(ours(data.x, data.edge_index), theirs(data.x, data.edge_index))


@every_model
def test_a_sparse_adjacency_is_read_as_pyg_reads_it(name) -> None:
    data, net = plain_data(), drawn(model(name))
    out = net(data.x, data.edge_index, data.edge_weight)
    adjacency = to_torch_csc_tensor(data.edge_index, data.edge_weight, size=(N, N))
    torch.testing.assert_close(net(data.x, adjacency.t()), out)
    adj_t = ToSparseTensor(attr="edge_weight", layout=torch.sparse_csr)(data).adj_t
    torch.testing.assert_close(net(data.x, adj_t), out)


@every_model
def test_graphs_without_edges_or_nodes(name) -> None:
    for n in (0, 1, 4):
        net = getattr(nn, name)(D, 8, CLASSES, *((max(n, 1),) if name in EXTRA else ()))
        for edge_index in (torch.empty(2, 0, dtype=torch.long), torch.zeros(2, min(n, 1), dtype=torch.int32)):
            for form in (torch.Tensor.clone, torch.Tensor.to_sparse_csr):
                out = net.eval()(form(torch.rand(n, D)), edge_index)
                assert out.shape == (n, CLASSES)
                assert out.isfinite().all()
                out.sum().backward()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_model
def test_it_can_be_compiled(name, caplog) -> None:
    data, net = plain_data(), model(name).eval()
    out = net(data.x, data.edge_index)
    torch.compiler.reset()
    compiled = torch.compile(net, backend="eager")
    torch.testing.assert_close(compiled(data.x, data.edge_index), out, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(compiled(*net.prepared(data.x, data.edge_index)), out, rtol=1e-4, atol=1e-4)
    compiled.train()(data.x, data.edge_index).sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    warned = any(record.getMessage().startswith("Graph break") for record in caplog.records)
    assert warned == (name == "GCNSLPlus"), "which reads an ε that depends on the data"


EDGE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(N, 3), EDGE), f"x has 3 columns, .* built for in_channels={D}"),
        ((torch.ones(D), EDGE), r"x has shape \(12,\): give a row for each node \(n × 12\)"),
        ((torch.ones(N, D).double(), EDGE), r"x has dtype torch.float64, .* call x.to\(torch.float32\)"),
        ((torch.ones(N, D).long(), EDGE), "x has dtype torch.int64"),
        (([[1.0] * D] * N, EDGE), "x is a list: give a torch.Tensor"),
        ((torch.ones(N, D), EDGE.tolist()), "edge_index is a list: give a torch.Tensor"),
        ((torch.ones(N, D), EDGE * N), r"edge_index\[1, 0\] is 40, but there are 40 nodes"),
        ((torch.ones(N, D), EDGE.float()), "edge_index has dtype float32: give integer node numbers"),
        ((torch.ones(N, D), torch.ones(3, 2, dtype=torch.long)), r"edge_index has shape \(3, 2\).*transpose it"),
        ((torch.ones(N, D), EDGE, torch.ones(2)), r"edge_weight has shape \(2,\)"),
        ((torch.ones(N, D), EDGE, [1.0]), "edge_weight is a list: give a torch.Tensor"),
        ((torch.ones(N, D), EDGE, None, EDGE), "takes x, edge_index and edge_weight, but 1 more"),
        (
            (torch.ones(N, D), torch.ones(N, 9).to_sparse()),
            r"edge_index has shape \(40, 9\): give an adj_t of shape \(40, 40\)",
        ),
    ],
)
def test_what_does_not_fit_is_named(arguments, message) -> None:
    for each in MODELS:
        with pytest.raises(InputError, match=message):
            model(each.__name__)(*arguments)


def test_missing_edges_and_other_nodes_are_named() -> None:
    for name in sorted({each.__name__ for each in MODELS} - {"MLP", "NLGNN"}):
        with pytest.raises(InputError, match="edge_index is missing: give the edges"):
            model(name)(torch.ones(N, D))
    for name in EXTRA:
        with pytest.raises(InputError, match=f"x has 39 rows, .* built for num_nodes={N}"):
            model(name)(torch.ones(N - 1, D), EDGE)


def test_both_parts_of_the_paper_fit_into_anyones_model() -> None:
    data = Compose([ToUndirected(), AddSpectralFeatures(5, n_anchors=20)])(plain_data())
    assert data.spectral.shape == (N, 5)
    net = nn.GCNSL(D, 8, CLASSES, spectral_channels=5)
    assert net(data.x, data.edge_index, spectral=data.spectral).shape == (N, CLASSES)
    torch.manual_seed(0)
    mixed = Sequential(
        "x, edge_index",
        [
            (GCNConv(D, 8), "x, edge_index -> near"),
            (nn.ReconnectConv(D, 8, epsilon=0.5), "x -> alike"),
            (lambda near, alike: torch.cat([near, alike], dim=1).relu(), "near, alike -> h"),
            (torch.nn.Linear(16, CLASSES), "h -> out"),
        ],
    )
    optimizer, losses = torch.optim.Adam(mixed.parameters(), lr=0.02), []
    for _ in range(30):
        optimizer.zero_grad()
        loss = cross_entropy(mixed(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@every_model
def test_a_gpu_gives_the_same(name) -> None:
    data, net = plain_data(), drawn(model(name))
    out, data = net(data.x, data.edge_index), data.to("cuda")
    torch.testing.assert_close(net.cuda()(data.x, data.edge_index).cpu(), out, rtol=1e-3, atol=1e-3)
    set_masks(net, torch.ones_like(data.edge_weight), data.edge_index, apply_sigmoid=False)
    torch.testing.assert_close(net(data.x, data.edge_index).cpu(), out, rtol=1e-3, atol=1e-3)
