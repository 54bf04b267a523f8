"""Isomap, Poincaré's embedding and struc2vec, each against its definition."""

from functools import cache
from importlib.util import find_spec
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from sklearn.manifold import Isomap

from gcnsl.datasets.latent_spaces import (
    STEPS,
    WALKS,
    candidates,
    isomap,
    pair_costs,
    poincare,
    random_walks,
    struc2vec,
)

from .latent_cases import csr, distances, random_graph


def test_is_scikit_learns_on_a_connected_graph() -> None:
    graph = nx.connected_watts_strogatz_graph(80, 4, 0.2, seed=0)
    theirs = Isomap(n_neighbors=None, radius=1.0, metric="precomputed").fit_transform(csr(graph).astype(float))
    ours = isomap(csr(graph))
    np.testing.assert_allclose(distances(ours), distances(theirs), atol=1e-6)


needs_gensim = pytest.mark.skipif(find_spec("gensim") is None, reason="needs gensim")
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


def test_landmarks_place_the_others() -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20))
    exact, rough = (distances(isomap(csr(graph), landmarks=landmarks)) for landmarks in (None, 40))
    assert np.corrcoef(exact.ravel(), rough.ravel())[0, 1] > 0.98


@needs_gensim
def test_nodes_without_neighbours_have_no_position() -> None:
    graph = random_graph(degree=1.5)
    lonely = np.array([graph.degree(node) == 0 for node in range(60)])
    assert lonely.any()
    np.testing.assert_array_equal(np.isnan(poincare(csr(graph))).any(axis=1), lonely)
    assert np.isnan(poincare(csr(nx.empty_graph(3)))).all()


def warp(a: list, b: list) -> float:
    """Dynamic time warping by its definition: the cheapest way through both sequences."""

    @cache
    def cheapest(i: int, j: int) -> float:
        high, low = max(a[i][0], b[j][0]) + 0.5, min(a[i][0], b[j][0]) + 0.5
        cost = (high / low - 1) * max(a[i][1], b[j][1])
        ways = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        before = [cheapest(*way) for way in ways if min(way) >= 0]
        return cost + (min(before) if before else 0)

    return cheapest(len(a) - 1, len(b) - 1)


def ring(graph: nx.Graph, node: int, k: int) -> list:
    """The degrees at distance k, each with how often it is there."""
    apart = nx.single_source_shortest_path_length(graph, node)
    degrees = [graph.degree(other) for other, steps in apart.items() if steps == k]
    return sorted((degree, degrees.count(degree)) for degree in set(degrees))


def test_costs_are_the_definition() -> None:
    graph = random_graph(40, degree=2.5)
    adjacency, layers = csr(graph), 3
    pairs = candidates(np.diff(adjacency.indptr))
    costs = pair_costs(adjacency, pairs, layers)
    assert costs.shape == (layers + 1, pairs.shape[1])
    for (u, v), cost in zip(pairs.T.tolist(), costs.T, strict=True):
        total = 0.0
        for k in range(layers + 1):
            a, b = ring(graph, u, k), ring(graph, v, k)
            total += warp(a, b) if a and b else np.inf
            assert cost[k] == pytest.approx(total), (u, v, k)


def test_walks_go_where_a_layer_leads() -> None:
    rng = np.random.default_rng(0)
    pairs = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    costs = np.array([[0.0, 0.0, 0.0, 50.0], [1.0, np.inf, np.inf, np.inf]])
    walks = random_walks(pairs, costs, 6, rng)
    assert walks.shape == (6 * WALKS, STEPS)
    assert sorted(walks[:, 0].tolist()) == sorted(list(range(6)) * WALKS)
    steps = {tuple(sorted(step)) for walk in walks.tolist() for step in pairwise(walk)}
    assert steps - {(node, node) for node in range(6)} == {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert (walks[walks[:, 0] == 5] == 5).all()
    to_four = sum(walk[1:].count(4) for walk in walks.tolist() if walk[0] != 4)
    assert to_four == 0  # exp(-50) against 1


@needs_gensim
@pytest.mark.parametrize("embed", [poincare, struc2vec, lambda graph, seed: isomap(graph, landmarks=10, seed=seed)])
def test_the_seed_decides(embed) -> None:
    adjacency = csr(random_graph(20))
    one, again, other = (embed(adjacency, seed=seed) for seed in (1, 1, 2))
    assert one.shape == (20, 2)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other, equal_nan=True)
