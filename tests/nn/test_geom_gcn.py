import numpy as np
import pytest
import torch

from gcnsl import InputError, load
from gcnsl.nn import GeomGCN, GeomGCNConfig
from gcnsl.nn.geom_gcn import divided_adjacency
from gcnsl.structure import StructuralNeighbourhood, structural_neighbourhood

from .cases import CLASSES, D, N, P, adjacency_matrix, both_forms, drawn, small_graph, weights


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory) -> None:
    monkeypatch.setattr("gcnsl.datasets.dataset_files.cache_folder", lambda: tmp_path_factory.getbasetemp() / "cache")


def divisions(found: StructuralNeighbourhood) -> list[np.ndarray]:
    """Â_r for the eight divisions and the nodes themselves."""
    A = np.zeros((9, N, N))
    for node, neighbour, division in zip(*found.edge_index.tolist(), found.division.tolist(), strict=True):
        A[division, node, neighbour] = 1
    A[8] = np.eye(N)
    degree = A.sum(axis=(0, 2))
    return [A[r] / np.sqrt(degree[:, None] * degree[None, :]) for r in range(9)]


@pytest.mark.usefixtures("double")
def test_is_the_equation() -> None:
    data = small_graph()
    x, found = data.x.double(), structural_neighbourhood(data.edge_index, N)
    model = drawn(GeomGCN(D, P, CLASSES))
    w, A = weights(model), divisions(found)
    W1, W2 = (np.split(w[f"{layer}.lin.weight"], 9, axis=1) for layer in ("first", "second"))
    H = np.maximum(np.concatenate([A[r] @ x.numpy() @ W1[r] for r in range(9)], axis=1), 0)
    expected = sum(A[r] @ H @ W2[r] for r in range(9)) / 9
    adjacency = divided_adjacency(found, N)
    for features in both_forms(x):
        logits = model(features, adjacency)
        np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


def test_divisions_together_hold_the_graph() -> None:
    data = small_graph()
    A = divisions(structural_neighbourhood(data.edge_index, N))
    np.testing.assert_array_equal(sum(A[:4]) > 0, adjacency_matrix(data) > 0)


def test_maps_of_divisions_are_drawn_each_by_itself() -> None:
    torch.manual_seed(0)
    weight = GeomGCN(D, P, CLASSES).first.lin.weight
    limit = np.sqrt(6 / (D + P))
    assert 0.9 * limit < weight.abs().max() <= limit


def test_missing_neighbourhoods_are_named() -> None:
    with pytest.raises(InputError, match=r"needs neighbourhoods: compute them with gcnsl\.structure\."):
        GeomGCNConfig().inputs(small_graph(), None, seed=0)


def test_neighbourhoods_come_back_from_their_state() -> None:
    data, config = small_graph(), GeomGCNConfig()
    found = structural_neighbourhood(data.edge_index, N)
    again = config.from_state(*found.state(), data, seed=0)
    before, after = (config.inputs(data, each, seed=0)[1] for each in (found, again))
    assert before.to_dense().equal(after.to_dense())


@pytest.mark.parametrize("embedding", ["isomap", "struc2vec"])
def test_they_are_computed_as_the_configuration_says(embedding) -> None:
    data = small_graph()
    found = GeomGCNConfig(embedding=embedding).precompute(data, seed=0)
    expected = structural_neighbourhood(data.edge_index, N, embedding=embedding)
    assert found.edge_index.equal(expected.edge_index)
    assert found.division.equal(expected.division)


def test_a_graph_of_ones_own_has_no_published_ones() -> None:
    data = small_graph()
    data.name = "cora"  # a file may have any name
    with pytest.raises(InputError, match=r"source\('published'\) .*use 'computed'"):
        GeomGCNConfig(source="published").precompute(data, seed=0)


def test_those_of_a_benchmark_are_read(data_root) -> None:
    data = load("texas", root=data_root)
    found = GeomGCNConfig(source="published", embedding="poincare").precompute(data, seed=0, root=data_root)
    assert "published" in found.how
    assert int(found.edge_index.max()) < data.num_nodes
