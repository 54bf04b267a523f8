import sys
from functools import cache
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from gcnsl import InputError
from gcnsl.structure.struc2vec import STEPS, WALKS, candidates, pair_costs, random_walks, struc2vec

from .cases import csr, distances, random_graph

pytest.importorskip("gensim")


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
    costs = pair_costs(adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64), pairs, layers)
    assert costs.shape == (layers + 1, pairs.shape[1])
    for (u, v), cost in zip(pairs.T.tolist(), costs.T, strict=True):
        total = 0.0
        for k in range(layers + 1):
            a, b = ring(graph, u, k), ring(graph, v, k)
            total += warp(a, b) if a and b else np.inf
            assert cost[k] == pytest.approx(total), (u, v, k)


def test_candidates_are_the_nearest_by_degree() -> None:
    degree = np.array([5, 1, 1, 9, 2, 3, 3, 4, 2, 7])
    pairs = candidates(degree)
    assert len({frozenset(pair) for pair in pairs.T.tolist()}) == pairs.shape[1] == 9 + 8 + 7 + 6
    partners = {int(node) for pair in pairs.T if 3 in pair for node in pair} - {3}
    assert partners in ({9, 0, 7, 5}, {9, 0, 7, 6})


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


def test_steps_are_drawn_by_weight_however_small() -> None:
    pairs, costs = np.array([[0, 0, 3], [1, 2, 4]]), np.array([[900.0, 900.0 + np.log(3), 0.0]])
    walks = random_walks(pairs, costs, 5, np.random.default_rng(0))
    after = [there for walk in walks.tolist() for here, there in pairwise(walk) if here == 0]
    assert after.count(1) / len(after) == pytest.approx(0.75, abs=0.03)
    assert after.count(2) / len(after) == pytest.approx(0.25, abs=0.03)


def test_alike_places_are_near() -> None:
    graph = nx.barbell_graph(8, 6)
    apart = distances(struc2vec(csr(graph)))
    mirrored = [(node, 21 - node) for node in range(8, 11)]  # two halves of the bridge
    inside = [(0, 15), (1, 20)]  # of the two bells
    unlike = [(0, 10), (1, 11), (15, 11), (20, 10)]
    alike = [apart[pair] for pair in inside + mirrored]
    assert np.mean(alike) < 0.5 * np.mean([apart[pair] for pair in unlike])


def test_the_seed_decides() -> None:
    adjacency = csr(random_graph(20))
    one, again, other = (struc2vec(adjacency, seed=seed) for seed in (1, 1, 2))
    assert one.shape == (20, 2)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_what_to_install_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"'struc2vec'\) needs gensim: pip install 'gcnsl\[geom\]'"):
        struc2vec(csr(nx.path_graph(3)))
