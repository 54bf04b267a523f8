import networkx as nx
import numpy as np
import pytest
from sklearn.manifold import Isomap

from gcnsl.structure.isomap import isomap

from .cases import csr, distances, random_graph


def test_is_scikit_learns_on_a_connected_graph() -> None:
    graph = nx.connected_watts_strogatz_graph(80, 4, 0.2, seed=0)
    theirs = Isomap(n_neighbors=None, radius=1.0, metric="precomputed").fit_transform(csr(graph).astype(float))
    ours = isomap(csr(graph))
    np.testing.assert_allclose(distances(ours), distances(theirs), atol=1e-6)


def test_keeps_the_distances_of_a_path() -> None:
    graph = nx.path_graph(7)
    np.testing.assert_allclose(distances(isomap(csr(graph))), nx.floyd_warshall_numpy(graph), atol=1e-6)


def test_many_nodes_are_placed_like_few() -> None:
    """More than 200 go another way through the linear algebra."""
    graph = nx.path_graph(300)
    np.testing.assert_allclose(distances(isomap(csr(graph))), nx.floyd_warshall_numpy(graph), atol=1e-4)


KINDS = {
    "star": nx.star_graph,
    "clique": nx.complete_graph,
    "path": nx.path_graph,
    "edgeless": nx.empty_graph,
    "bipartite": lambda n: nx.complete_bipartite_graph(n // 2 + 1, n // 2),
    "two stars": lambda n: nx.disjoint_union(nx.star_graph(n // 2), nx.star_graph(n // 3)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_whose_eigenvalues_coincide(kind) -> None:
    for n in (*range(2, 31), 75, 150, 210):
        graph = KINDS[kind](n)
        positions = isomap(csr(graph))
        assert positions.shape == (len(graph), 2)
        assert np.isfinite(positions).all()
        if kind == "star":  # leaves are two steps apart, and two dimensions can only show a part of that
            assert distances(positions).max() < 2.1


def test_components_lie_apart() -> None:
    graph = random_graph(degree=1.5)
    parts = list(nx.connected_components(graph))
    assert len(parts) > 5
    assert any(len(part) == 1 for part in parts)
    apart = distances(isomap(csr(graph)))
    widest = max(apart[np.ix_(list(part), list(part))].max() for part in parts)
    for part in parts:
        others = [node for node in graph if node not in part]
        assert apart[np.ix_(list(part), others)].min() > widest


def test_all_nodes_as_landmarks_are_no_approximation() -> None:
    adjacency = csr(random_graph())
    np.testing.assert_array_equal(isomap(adjacency, landmarks=60), isomap(adjacency))


def test_landmarks_place_the_others() -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20))
    exact, rough = (distances(isomap(csr(graph), landmarks=landmarks)) for landmarks in (None, 40))
    assert np.corrcoef(exact.ravel(), rough.ravel())[0, 1] > 0.98


def test_landmarks_come_from_the_seed() -> None:
    adjacency = csr(random_graph())
    one, again, other = (isomap(adjacency, landmarks=10, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
