import numpy as np
import torch

from gcnsl import synthetic
from gcnsl.graph import from_arrays
from gcnsl.spectral import structural_features
from gcnsl.spectral.structural_features import StructuralFeatures

GRAPH = synthetic(n=300, h=0.2, classes=3, degree=6, features=4, seed=3)


def dense(data) -> np.ndarray:
    """Â without loops."""
    adjacency = np.zeros((data.num_nodes, data.num_nodes))
    adjacency[tuple(data.edge_index.numpy())] = 1
    np.fill_diagonal(adjacency, 0)
    root = np.divide(1, np.sqrt(adjacency.sum(1)), where=adjacency.sum(1) > 0, out=np.zeros(len(adjacency)))
    return root[:, None] * adjacency * root


def test_degrees_and_eigenvectors() -> None:
    made = StructuralFeatures.fit(GRAPH.edge_index, GRAPH.num_nodes)
    x = made.of(GRAPH.edge_index, GRAPH.num_nodes)
    degree = (dense(GRAPH) > 0).sum(1)
    np.testing.assert_allclose(x[:, 0], np.log1p(degree), rtol=1e-5)
    around = [np.log1p(degree[row > 0]).mean() for row in dense(GRAPH)]
    np.testing.assert_allclose(x[:, 1], around, rtol=1e-5)
    values = np.linalg.eigvalsh(dense(GRAPH))
    largest = np.sort(np.abs(values))[::-1][:32]
    found = x[:, 2:].double().numpy() / np.sqrt(300)
    np.testing.assert_allclose(np.linalg.norm(dense(GRAPH) @ found, axis=0), largest, atol=1e-4)
    np.testing.assert_allclose(found.T @ found, np.eye(32), atol=1e-4)


def test_in_a_large_graph_the_eigenvectors_that_stand_out_are_the_same(monkeypatch) -> None:
    data = synthetic(n=600, h=0.9, classes=3, degree=30, features=4, seed=0)
    exact = StructuralFeatures.fit(data.edge_index, 600).features
    monkeypatch.setattr(structural_features, "EXACT_NODES", 1)
    approximate = StructuralFeatures.fit(data.edge_index, 600).features
    np.testing.assert_allclose(approximate[:, :5], exact[:, :5], atol=1e-3)


def test_new_nodes_follow_the_same_formula_and_old_ones_stay() -> None:
    made = StructuralFeatures.fit(GRAPH.edge_index, GRAPH.num_nodes)
    before = made.of(GRAPH.edge_index, GRAPH.num_nodes)
    twin = GRAPH.edge_index[:, GRAPH.edge_index[0] == 7].clone()
    twin[0] = 300
    links = torch.cat([GRAPH.edge_index, twin, torch.tensor([[301], [300]])], dim=1)
    grown = from_arrays(np.empty((302, 0)), links)
    after = made.of(grown.edge_index, 302)
    assert after[:300].equal(before)
    torch.testing.assert_close(after[300], before[7])
    assert after[301].abs().max() == 0


def test_a_clique_has_the_same_features_each_time() -> None:
    """All of its eigenvalues but one are equal, so that ARPACK runs out of directions and goes on with random ones."""
    n = 373
    edges = torch.combinations(torch.arange(40)).T
    both = torch.cat([edges, edges.flip(0)], dim=1)
    first, second = (StructuralFeatures.fit(both.clone(), n).features for _ in range(2))
    assert torch.equal(first, second)
