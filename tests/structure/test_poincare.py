import sys

import networkx as nx
import numpy as np
import pytest

from gcnsl import InputError
from gcnsl.structure.poincare import poincare

from .cases import csr, random_graph

pytest.importorskip("gensim")


def hyperbolic(positions: np.ndarray) -> np.ndarray:
    square = (positions**2).sum(1)
    apart = ((positions[:, None] - positions[None]) ** 2).sum(2)
    return np.arccosh(1 + 2 * apart / ((1 - square)[:, None] * (1 - square)[None]))


def test_neighbours_are_near() -> None:
    graph = nx.balanced_tree(3, 3)
    positions = poincare(csr(graph))
    assert (np.linalg.norm(positions, axis=1) < 1).all()
    apart = hyperbolic(positions)
    joined = nx.to_numpy_array(graph) > 0
    assert apart[joined].mean() < 0.7 * apart[~joined].mean()


def test_nodes_without_neighbours_have_no_position() -> None:
    graph = random_graph(degree=1.5)
    lonely = np.array([graph.degree(node) == 0 for node in range(60)])
    assert lonely.any()
    np.testing.assert_array_equal(np.isnan(poincare(csr(graph))).any(axis=1), lonely)
    assert np.isnan(poincare(csr(nx.empty_graph(3)))).all()


def test_the_seed_decides() -> None:
    adjacency = csr(nx.path_graph(12))
    one, again, other = (poincare(adjacency, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_sample_of_the_edges_holds_every_node() -> None:
    graph = nx.complete_graph(40)
    positions = poincare(csr(graph), edges=10)
    assert not np.isnan(positions).any()
    assert not np.array_equal(positions, poincare(csr(graph)))


@pytest.mark.parametrize("graph", [nx.path_graph(2), nx.star_graph(30), nx.complete_graph(8), nx.complete_graph(20)])
def test_nodes_that_know_all_others(graph) -> None:
    assert not np.isnan(poincare(csr(graph))).any()


def test_what_to_install_is_said(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models.poincare", None)
    with pytest.raises(InputError, match=r"'poincare'\) needs gensim: pip install 'gcnsl\[geom\]'"):
        poincare(csr(nx.path_graph(3)))
