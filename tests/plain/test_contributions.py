"""What adds to a prediction of the plain methods."""

import numpy as np
import pytest

from gcnsl import NodeClassifier, synthetic
from gcnsl.graph import from_arrays
from gcnsl.plain.neighbour_columns import NEAR, NEAR_KNOWN, OWN, TWIN, VOTER, Source

N = 240


def graph(classes: int, *, directed: bool = False):
    data = synthetic(n=N, h=0.8, classes=classes, degree=5, features=6, seed=1, signal=0.5)
    y = np.where(np.arange(N) % 3 == 0, -1, data.y.numpy())
    return from_arrays(data.x, data.edge_index, y, directed=directed)


def fitted(method: str, data, **options):
    return NodeClassifier(method, device="cpu", **options).fit_graph(data).fitted_


def contributions(fitted, node: int, one: int, other: int):
    prepared = fitted.prepared
    return fitted.model.contributions(
        prepared.inputs, prepared.graph, prepared.method.config, node=node, one=one, other=other
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("boosted-trees", {}),
        ("boosted-trees", {"labels": False, "hops": 1}),
        ("boosted-trees", {"hops": 0, "components": 4}),
        ("logistic", {}),
        ("logistic", {"hops": 0}),
        ("label-propagation", {}),
        ("twins", {"direction": "undirected"}),
    ],
)
def test_they_add_up_to_the_log_odds(method, options, classes, directed) -> None:
    """Up to what they are compared with, which is the same for all nodes that have any."""
    model = fitted(method, graph(classes, directed=directed), **options)
    logits, rest = model.logits().double(), []
    for node in range(0, N, 7):
        found = contributions(model, node, 1, 0)
        if found:
            rest.append(float(logits[node, 1] - logits[node, 0]) - sum(found.values()))
    assert len(rest) > 10
    assert np.ptp(rest) < 1e-4
    if method in ("label-propagation", "twins"):
        prior = model.model.prior
        assert rest[0] == pytest.approx(float((prior[1] / prior[0]).log()), abs=1e-4)


@pytest.mark.parametrize("method", ["boosted-trees", "logistic"])
def test_a_column_of_a_node_and_of_its_neighbours_are_told_apart(method) -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(N, 5)).astype(np.float32)
    edges = np.stack([np.repeat(np.arange(N), 2), (np.arange(N)[:, None] + [1, 2]).ravel() % N])
    around = sum(np.roll(x[:, 3], step) for step in (-2, -1, 1, 2))
    for y, source in ((x[:, 3] > 0, Source(OWN, 3)), (around > 0, Source(NEAR, 3))):
        model = fitted(method, from_arrays(x, edges, y.astype(int)))
        largest = [
            max(found, key=lambda s: abs(found[s])) for found in (contributions(model, n, 1, 0) for n in range(40))
        ]
        assert np.mean([found == source for found in largest]) >= 0.95


def test_labels_are_those_of_neighbours_and_twins() -> None:
    data = graph(2)
    trees = fitted("boosted-trees", data)
    votes, twins = fitted("label-propagation", data), fitted("twins", data, direction="undirected")
    links = np.zeros((N, N))
    links[tuple(data.edge_index.numpy())] = 1
    found = {Source(NEAR_KNOWN, 1) in contributions(trees, node, 1, 0) for node in range(20)}
    assert found == {True}
    for node in range(20):
        voters = {s.number for s in contributions(votes, node, 1, 0) if s.text == VOTER}
        assert voters <= set(np.flatnonzero(links[node]))
        cosine = (links @ links[node]) / np.sqrt(links.sum(axis=1).clip(1))
        cosine[(np.arange(N) == node) | (data.y.numpy() < 0) | ~twins.model.labels.any(dim=1).numpy()] = 0
        alike = set(np.flatnonzero((cosine > 0) & (cosine >= cosine.max() - 1e-9)))
        assert {s.number for s in contributions(twins, node, 1, 0) if s.text == TWIN} == alike
