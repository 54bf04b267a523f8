import json

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError
from gcnsl.structure import StructuralNeighbourhood, structural_neighbourhood
from gcnsl.structure.neighbourhood import neighbourhood

from .cases import csr, distances, edges, random_graph, same


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


def test_nodes_without_a_position_have_no_latent_neighbours() -> None:
    positions = np.array([[0, 0], [np.nan, np.nan], [1, 0], [9, 9.0]])
    assert latent_pairs(neighbourhood(csr(nx.path_graph(4)), positions)) == {
        (0, 2),
        (2, 0),
        (2, 3),
        (3, 2),
        (0, 3),
        (3, 0),
    }
    assert latent_pairs(neighbourhood(csr(nx.path_graph(4)), np.full((4, 2), np.nan))) == set()


def test_a_crowd_in_one_place_is_no_neighbourhood() -> None:
    positions = np.zeros((30, 2))
    positions[0] = 5
    assert latent_pairs(neighbourhood(csr(nx.star_graph(29)), positions)) == set()


def test_no_edges_no_neighbours() -> None:
    pairs, division = neighbourhood(csr(nx.empty_graph(5)), draw(5, 0, hyperbolic=False))
    assert pairs.shape == (2, 0)
    assert division.shape == (0,)


def test_comes_back_from_its_state() -> None:
    found = structural_neighbourhood(edges(), 50)
    plain, tensors = found.state()
    assert json.loads(json.dumps(plain)) == plain
    assert same(StructuralNeighbourhood.from_state(plain, tensors), found)


def test_a_damaged_state_is_refused() -> None:
    plain, tensors = structural_neighbourhood(edges(), 50).state()
    pairs, division = tensors["edge_index"], tensors["division"]
    damaged = [{"edge_index": pairs}, {"division": division}]
    damaged += [{**tensors, "edge_index": bad} for bad in (pairs[:, 1:], pairs[:1], pairs.int(), pairs - 1, pairs[0])]
    damaged += [{**tensors, "division": bad} for bad in (division[1:], division[None], division.long(), division + 4)]
    for bad in damaged:
        with pytest.raises((KeyError, ValueError)):
            StructuralNeighbourhood.from_state(plain, bad)
    with pytest.raises(KeyError):
        StructuralNeighbourhood.from_state({}, tensors)


def test_does_not_grow() -> None:
    found = StructuralNeighbourhood(torch.empty(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.uint8), "none")
    with pytest.raises(
        InputError, match=r"^can't take new nodes or other edges: its latent .*, or use another method$"
    ):
        found.grown(None)


def test_many_nodes_at_one_place_take_neither_time_nor_memory() -> None:
    """40,000 nodes at one place are 1.6 billion pairs, more than the graph has."""
    n = 40_000
    path = sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n), format="csr")
    positions = np.zeros((n, 2))
    positions[:5, 0] = 3 * np.arange(1, 6)
    pairs, division = neighbourhood((path + path.T).tocsr(), positions)
    assert pairs.shape[1] == len(division) == 2 * (n - 1)
