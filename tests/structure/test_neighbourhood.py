import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structure_cases import csr, distances, random_graph

from gcnsl.structure.neighbourhood import neighbourhood


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
