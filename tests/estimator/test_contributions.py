"""What adds to a prediction: sums that must hold, and reasons that are known."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnsl import NodeClassifier
from gcnsl.auto import Blend
from gcnsl.auto.ensemble import Member
from gcnsl.estimator import contributions as module
from gcnsl.estimator.contributions import contributions, with_rows
from gcnsl.estimator.explanation import explain
from gcnsl.plain.neighbour_columns import FAR, NEAR, OWN, Source
from gcnsl.sparse import adjacency_matrix, to_scipy
from gcnsl.training import History

from .cases import EDGES, X, Y

SPARSE_X = sp.csr_array((X * (np.random.default_rng(0).random(X.shape) < 0.1)).astype(np.float32))
NETWORKS = ("mlp", "gcn", "gat", "h2gcn-2", "linkx", "geom-gcn", "gcn-sl-cc", "gcn-sl-plus")
"""One of each kind."""


def fitted(method: str, x=X, **options):
    options = {"epochs": 15} | options
    return NodeClassifier(method, device="cpu", **options).fit(x, Y, edge_index=EDGES).fitted_


@pytest.mark.parametrize(
    ("method", "x", "options"),
    [
        *((name, X, {}) for name in NETWORKS),
        ("mlp", SPARSE_X, {}),
        ("gcn-sl-plus", SPARSE_X, {}),
        ("gcn-sl-cc", SPARSE_X, {"spectral_method": "esc"}),
        ("gcn-sl-av", X, {"spectral_method": "sc"}),
    ],
)
def test_those_of_networks_differ_between_nodes_as_the_log_odds_do(method, x, options) -> None:
    model = fitted(method, x, **options)
    logits, found = model.logits(), [contributions(model, node, one=0, other=2, steps=256) for node in (4, 5)]
    log_odds = (logits[:, 0] - logits[:, 2])[[4, 5]]
    spread = sum(abs(value) for each in found for value in each.values())
    one, two = (sum(each.values()) for each in found)
    assert one - two == pytest.approx(float(log_odds[0] - log_odds[1]), abs=0.01 * max(0.1, spread))


@pytest.mark.parametrize("method", ["gcn", "sage", "h2gcn-2", "gcn-sl-plus"])
def test_neighbours_of_another_kind_are_no_reason_if_all_nodes_have_them(method) -> None:
    """Customers have a column, and all shops that they link to are of the same size."""
    generator = np.random.default_rng(1)
    x = np.zeros((N + HUBS, 2), dtype=np.float32)
    x[:N, 0], x[N:, 1], y = generator.normal(size=N), 20, np.repeat([0, 1, -1], [N // 2, N // 2, HUBS])
    edges = random_edges(generator, N, HUBS, 2)
    model = NodeClassifier(method, device="cpu", epochs=1).fit(x, y, edge_index=edges).fitted_
    found = [contributions(model, node, one=1, other=0) for node in range(20)]
    of_size = np.mean([[each.get(Source(text, 1), 0.0) for text in (NEAR, FAR)] for each in found], axis=0)
    assert np.abs(of_size).max() < 0.05


@pytest.mark.parametrize("x", [X, SPARSE_X])
def test_in_a_large_graph_the_nearest_nodes_change(x, monkeypatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 9 * X.shape[1])
    model = fitted("gcn", x)
    read, adjacency = model.prepared.inputs
    links = adjacency_matrix(model.graph.edge_index, len(Y), self_loops=False)
    means, kinds = module._typical(to_scipy(read), links, Y >= 0)
    kinds[4], rows = 0, module._nearest(links, 4, 9)[0]
    assert len(rows) == 9
    typical = torch.from_numpy(means.astype(np.float32)[kinds[rows]])
    found = contributions(model, 4, one=0, other=2, steps=128)
    with torch.no_grad():
        after, before = model.logits()[4], model.model(with_rows(read, rows, typical), adjacency)[4]
    assert sum(found.values()) == pytest.approx(float((after - before)[0] - (after - before)[2]), abs=1e-2)
    assert {source.text for source in found} <= {OWN, NEAR, FAR}


def test_a_linear_network_is_attributed_exactly() -> None:
    model = fitted("mlp")
    with torch.no_grad():
        for lin in model.model.lins:
            lin.bias.fill_(100.0)  # no unit is ever off
    first, last = (lin.weight.detach().numpy() for lin in model.model.lins)
    read = model.prepared.inputs[0].numpy()
    expected = (read[4] - read[Y >= 0].mean(axis=0)) * ((last[0] - last[1]) @ first)
    found = contributions(model, 4, one=0, other=1, steps=2)
    assert {s.number for s in found} == set(np.flatnonzero(np.abs(expected) > module.TINY))
    assert all(found[s] == pytest.approx(expected[s.number], abs=1e-4) for s in found)


def blend_of(*models) -> Blend:
    weights = [0.75, 0.25][: len(models)]
    members = tuple(Member(str(w), w, 2.0, (each,)) for w, each in zip(weights, models, strict=True))
    return Blend(members, History(), models[0].graph, temperature=0.5)


def test_those_of_an_ensemble_are_the_weighted_sum() -> None:
    trees, network = fitted("boosted-trees"), fitted("gcn")
    one, two = (contributions(each, 4, one=0, other=2) for each in (trees, network))
    found = contributions(blend_of(trees, network), 4, one=0, other=2)
    expected = {s: 0.75 * one.get(s, 0) + 0.25 * two.get(s, 0) for s in {*one, *two}}
    assert found == pytest.approx({s: v for s, v in expected.items() if abs(v) > module.TINY})


def test_components_are_given_to_the_features_they_are_made_of() -> None:
    generator = np.random.default_rng(0)
    wide = generator.normal(size=(90, 80)).astype(np.float32)
    wide[:, 7] *= 10
    model = (
        NodeClassifier("boosted-trees", device="cpu", components=10, hops=1, standardize="never")
        .fit(wide, (wide[:, 7] > 0).astype(int), edge_index=EDGES)
        .fitted_
    )
    options = {"node": 3, "one": 1, "other": 0}
    inside = model.model.contributions(model.prepared.inputs, model.graph, model.prepared.method.config, **options)
    found = contributions(model, 3, one=1, other=0)
    assert sum(found.values()) == pytest.approx(sum(inside.values()), abs=1e-3)
    assert max(found, key=lambda s: abs(found[s])) == Source(OWN, 7)


# Graphs of which the reasons are known.
N, HUBS, BLANK = 300, 8, 150
PLAIN = ("logistic", "boosted-trees")
NOT_LEARNED = np.arange(N) % 3 == 0
"""Nodes that are explained: models that know nodes by their links have other reasons for nodes they have memorised."""


def classifier(method: str, x, edges, y) -> NodeClassifier:
    """A classifier, or an ensemble of trees and a network."""
    if method == "ensemble":
        found, network = (classifier(each, x, edges, y) for each in ("boosted-trees", "sage"))
        found.fitted_ = blend_of(found.fitted_, network.fitted_)
        return found
    options = {} if method in (*PLAIN, "label-propagation") else {"epochs": 150}
    val_mask = np.append(NOT_LEARNED, np.zeros(len(y) - N, dtype=bool))
    return NodeClassifier(method, device="cpu", **options).fit(x, y, edge_index=edges, val_mask=val_mask)


def told(model, y, **options) -> list:
    """Explanations of nodes that are predicted rightly: a wrong prediction has other reasons."""
    right = np.flatnonzero(NOT_LEARNED & (model.predict()[:N] == y[:N]))
    assert len(right) >= 80
    return [explain(model, node, **options) for node in right[:20]]


def random_edges(generator, first: int, count: int, degree: int):
    return np.stack([np.repeat(np.arange(N), degree), first + generator.integers(0, count, N * degree)])


@pytest.mark.parametrize(
    "method",
    ["mlp", "sage", "h2gcn-2", "linkx", "acm-gcn", "gcn-sl-cc", "gcn-sl-plus", *PLAIN, "ensemble"],
)
def test_a_column_is_the_reason(method) -> None:
    """Of five columns, the fourth tells the class; links are drawn at random."""
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(N, 5)).astype(np.float32), generator.integers(0, 2, N)
    x[:, 3] = 2 * y - 1 + 0.1 * x[:, 3]
    model = classifier(method, x, random_edges(generator, 0, N, 1), y)
    assert np.mean([each.contributions[0].column == "feature 3" for each in told(model, y, edges=0)]) >= 0.95


@pytest.mark.parametrize(
    "method",
    ["gcn", "gat", "sage", "h2gcn-1", *PLAIN, "ensemble"],
)
def test_a_column_of_the_neighbours_is_the_reason(method) -> None:
    """Nodes link to three others whose fourth column tells the class, and to one whose column tells another."""
    generator = np.random.default_rng(1)
    y, sign = generator.integers(0, 2, N), np.arange(BLANK) % 2
    ends = [generator.choice(np.flatnonzero(sign == (y[i] if k < 3 else 1 - y[i]))) for i in range(N) for k in range(4)]
    x = generator.normal(size=(N + BLANK, 4)).astype(np.float32)
    x[:N, 3], x[N:, 3] = 0, 2 * sign - 1
    edges = np.stack([np.repeat(np.arange(N), 4), N + np.array(ends)])
    model = classifier(method, x, edges, np.append(y, np.full(BLANK, -1)))
    names = [each.contributions[0].name for each in told(model, y, edges=0)]
    assert np.mean([name == "feature 3 of neighbours" for name in names]) >= 0.95, names


@pytest.mark.parametrize(
    "method",
    ["gcn", "sage", "gcn-sl-cc", "gcn-sl-plus", "linkx", *PLAIN, "label-propagation", "ensemble"],
)
def test_a_neighbour_is_the_reason(method) -> None:
    """Nodes are of the class of the hub that they link to; the two others they link to are of no class."""
    generator = np.random.default_rng(1)
    kind, own = np.arange(HUBS) % 2, generator.integers(0, HUBS, N)
    y = np.concatenate([kind[own], kind, np.full(BLANK, -1)])
    x = np.zeros((len(y), 3), dtype=np.float32)
    x[N : N + HUBS, 0], x[N : N + HUBS, 1], x[:N, 2] = 2 * kind - 1, 1, generator.normal(size=N)
    edges = np.hstack([[np.arange(N), N + own], random_edges(generator, N + HUBS, BLANK, 2)])
    model = classifier(method, x, edges, y)
    found = {each.node.id: each.original[0].id for each in told(model, y, with_contributions=False)}
    assert np.mean([hub == N + own[node] for node, hub in found.items()]) >= 0.95, found
