"""Neighbours in the graph and in a latent space: their divisions, the cache, and what is said of approximations."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl.datasets import neighbourhoods as module
from gcnsl.datasets.neighbourhoods import neighbourhood, structural_neighbourhood

from .latent_cases import csr, distances, edges, random_graph, same

pytestmark = pytest.mark.usefixtures("cache")


def draw(n: int, seed: int, *, hyperbolic: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle, reach = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 0.999 if hyperbolic else 5, n)
    return reach[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def latent_pairs(found) -> set:
    pairs, division = found
    return {tuple(pair) for pair in pairs[:, division >= 4].T.tolist()}


@pytest.mark.parametrize("hyperbolic", [False, True])
@given(seed=st.integers(0, 99), n=st.integers(8, 40))
def test_latent_neighbours_are_the_closest_pairs(hyperbolic, seed, n) -> None:
    adjacency = csr(random_graph(n, degree=2, seed=seed))
    positions = draw(n, seed, hyperbolic=hyperbolic)
    apart = distances(positions)
    if hyperbolic:
        room = 1 - (positions**2).sum(1)
        apart = np.arccosh(1 + 2 * apart**2 / (room[:, None] * room[None]))
    upper = np.argwhere(np.triu(np.ones((n, n)), 1) > 0)
    closest = upper[np.argsort(apart[tuple(upper.T)])][: adjacency.nnz // 2].tolist()
    expected = {pair for u, v in closest for pair in ((u, v), (v, u))}
    assert latent_pairs(neighbourhood(adjacency, positions, hyperbolic=hyperbolic)) == expected


def test_divisions_are_spaces_and_quadrants() -> None:
    adjacency = csr(nx.star_graph(4))
    positions = np.array([[0, 0], [-1, -1], [-1, 1], [1, -1], [1, 1.0]])
    pairs, division = neighbourhood(adjacency, positions)
    by_pair = {(u, v): int(r) for u, v, r in zip(*pairs.tolist(), division, strict=True) if r < 4}
    assert [by_pair[0, leaf] for leaf in (1, 2, 3, 4)] == [0, 1, 2, 3]
    assert [by_pair[leaf, 0] for leaf in (1, 2, 3, 4)] == [3, 2, 1, 0]
    assert len(by_pair) == adjacency.nnz
    latent = {(u, v): int(r) for u, v, r in zip(*pairs.tolist(), division, strict=True) if r >= 4}
    assert latent == {pair: relation + 4 for pair, relation in by_pair.items()}


def test_many_nodes_at_one_place_take_neither_time_nor_memory() -> None:
    """40,000 nodes at one place are 1.6 billion pairs, more than the graph has."""
    n = 40_000
    path = sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n), format="csr")
    positions = np.zeros((n, 2))
    positions[:5, 0] = 3 * np.arange(1, 6)
    pairs, division = neighbourhood((path + path.T).tocsr(), positions)
    assert pairs.shape[1] == len(division) == 2 * (n - 1)


@pytest.mark.parametrize("embedding", ["isomap", "poincare", "struc2vec"])
def test_holds_the_graph_and_as_many_latent_neighbours(embedding) -> None:
    if embedding != "isomap":
        pytest.importorskip("gensim")
    given = edges()
    found = structural_neighbourhood(torch.cat([given, torch.tensor([[7], [7]])], dim=1), 50, embedding=embedding)
    graph = found.edge_index[:, found.division < 4]
    assert sorted(graph.T.tolist()) == sorted(given.T.tolist())
    latent = found.edge_index[:, found.division >= 4]
    assert 0 < latent.shape[1] <= graph.shape[1]
    assert (latent[0] != latent[1]).all()
    assert found.how == f"{embedding}, computed"


def test_is_computed_once_for_a_graph_whatever_the_order_of_its_edges(cache, monkeypatch) -> None:
    first = structural_neighbourhood(edges(), 50)
    monkeypatch.setattr(module, "embed", None)
    again = torch.cat([torch.tensor([[7], [7]]), edges().flip(1)], dim=1)  # and with a loop
    assert same(structural_neighbourhood(again, 50), first)
    assert len(list(cache.iterdir())) == 1
    with pytest.raises(TypeError, match="not callable"):
        structural_neighbourhood(edges()[:, :0], 50)


@pytest.mark.parametrize("damaged", [b"", b"PK", None])
def test_a_damaged_file_is_written_again(cache, damaged) -> None:
    first = structural_neighbourhood(edges(), 50)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damaged is None else damaged)
    assert same(structural_neighbourhood(edges(), 50), first)
    assert file.read_bytes() == whole
