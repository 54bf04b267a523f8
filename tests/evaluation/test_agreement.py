from dataclasses import replace

import pytest
import torch

from gcnsl import GCNSLClassifier, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.evaluation.measured import graph_facts, learned_agreement
from gcnsl.graph import edge_homophily
from gcnsl.methods import METHODS, initial_model, prepare


@pytest.fixture
def data():
    return synthetic(n=60, h=0.3, classes=3, degree=4, features=12, seed=0, signal=0.9)


def prepared(data, **options):
    method = METHODS["gcn-sl-cc"].with_options(n_components=3, n_anchors=8, **options)
    ready = prepare(method, data, seed=0, device=torch.device("cpu"))
    return initial_model(ready, 0), ready.inputs


@pytest.mark.parametrize("among", [torch.ones(60, dtype=torch.bool), torch.arange(60) % 3 > 0])
def test_learned_edges_are_counted_without_loops_and_in_parts(data, monkeypatch, among) -> None:
    monkeypatch.setattr("gcnsl.evaluation.measured.ROWS", 7)
    model, inputs = prepared(data, epsilon=0.6)
    found = learned_agreement(model, inputs, data.y, among=among)
    edges, _ = model.learned_graph(inputs[0])
    edges = edges[:, (edges[0] != edges[1]) & among[edges].all(dim=0)]
    assert found.degree == edges.shape[1] / int(among.sum())
    assert found.homophily == pytest.approx(edge_homophily(edges, data.y))
    assert learned_agreement(model, inputs, data.y, among=torch.zeros_like(among)) == (None, 0)


def test_samples_of_a_large_graph_are_measured(data, monkeypatch) -> None:
    for name, value in {"ALL_ROWS": 59, "SAMPLES": 3, "SAMPLED_ROWS": 4}.items():
        monkeypatch.setattr(f"gcnsl.evaluation.measured.{name}", value)
    model, inputs = prepared(data, epsilon=0.6)
    found = learned_agreement(model, inputs, data.y)
    edges, _ = model.learned_graph(inputs[0])
    measured = torch.isin(edges[0], torch.tensor([0, 1, 2, 3, 20, 21, 22, 23, 40, 41, 42, 43]))
    source, target = edges[:, (edges[0] != edges[1]) & measured]
    assert found.degree == len(source) / 12
    assert found.homophily == pytest.approx(float((data.y[source] == data.y[target]).double().mean()))


def test_both_graphs_are_described_by_all_labels(data) -> None:
    data = with_random_split(data)
    small = {"hidden_channels": 6, "n_components": 4, "n_anchors": 30, "epochs": 9, "device": "cpu", "epsilon": 0.6}
    classifier = GCNSLClassifier(**small).fit_graph(data)
    given, learned = graph_facts(classifier, data)
    assert (given.edges, given.homophily) == (
        data.edge_report.edges,
        pytest.approx(edge_homophily(data.edge_index, data.y)),
    )
    edges = classifier.learned_graph().edge_index
    edges = edges[:, edges[0] < edges[1]]
    assert learned.edges == edges.shape[1] > 0
    assert learned.homophily == pytest.approx(edge_homophily(torch.cat([edges, edges.flip(0)], dim=1), data.y))
    assert learned.chance == pytest.approx(sum(float((data.y == c).float().mean()) ** 2 for c in range(3)))
    assert replace(learned, homophily=0.9, density=0.05).doubt == ""
    assert "it is empty: a smaller epsilon" in replace(learned, edges=0).doubt
    assert "20% of all pairs, so it tells little" in replace(learned, density=0.2).doubt
    assert "no more than by chance" in replace(learned, density=0.05, homophily=learned.chance).doubt
    assert graph_facts(classifier.set_params(use_reconnected=False).fit_graph(data), data)[1] is None
