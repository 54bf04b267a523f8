import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from gcnsl import InputError, synthetic
from gcnsl.nn import H2GCN, H2GCNConfig, h2gcn
from gcnsl.nn.h2gcn import two_hop_adjacency
from gcnsl.sparse import SparseMatrix

from .cases import CLASSES, D, P, adjacency_matrix, both_forms, drawn, small_graph, symmetric, weights


def hops(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Who is at distance 1, and who at distance 2."""
    distance = shortest_path(A, unweighted=True)
    return (distance == 1).astype(float), (distance == 2).astype(float)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("relu", [True, False])
def test_is_the_equation(rounds, relu) -> None:
    data = small_graph()
    x = data.x.double()
    model = drawn(H2GCN(D, P, CLASSES, rounds=rounds, relu=relu))
    w = weights(model)
    A1, A2 = (symmetric(hop) for hop in hops(adjacency_matrix(data)))
    R = [x.numpy() @ w["lin_embed.weight"]]
    if relu:
        R[0] = np.maximum(R[0], 0)
    for k in range(rounds):
        R.append(np.concatenate([A1 @ R[k], A2 @ R[k]], axis=1))
    expected = np.concatenate(R, axis=1) @ w["lin_out.weight"]
    _, *adjacencies = H2GCNConfig().inputs(data, None, seed=0)
    for features in both_forms(x):
        logits = model(features, *adjacencies)
        np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-8, atol=1e-10)


@given(st.integers(8, 40), st.floats(0.5, 3), st.integers(0, 99), st.sampled_from([1, 50, 1 << 22]))
def test_two_hops_are_distance_two(n, degree, seed, block) -> None:
    edges = synthetic(n=n, h=0.5, classes=2, degree=degree, features=8, seed=seed).edge_index
    edges = torch.cat([edges, torch.tensor([[1], [1]])], dim=1)
    A = np.zeros((n, n))
    A[tuple(edges.numpy())] = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2gcn, "BLOCK_ENTRIES", block)
        found = two_hop_adjacency(edges, n)
    assert isinstance(found, torch.Tensor) == ((hops(A)[1] > 0).mean() > 0.15)
    dense = found if isinstance(found, torch.Tensor) else found.to_dense()
    np.testing.assert_allclose(dense.numpy(), symmetric(hops(A)[1]), rtol=1e-6)


def star(leaves: int) -> torch.Tensor:
    centre, others = torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)
    return torch.stack([torch.cat([centre, others]), torch.cat([others, centre])])


def test_too_many_pairs_are_refused_before_any_is_formed() -> None:
    with pytest.raises(
        InputError,
        match=r"H2GCN joins .* up to 10,000,100,000 pairs, which take 37 GiB, and at most 2 are allowed; use another",
    ):
        two_hop_adjacency(star(100_000), 100_001)


MEMORY_PROBE = """
import resource, torch
from gcnsl.nn.h2gcn import two_hop_adjacency
from tests.nn.test_h2gcn import star
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert two_hop_adjacency(star(4_000), 4_001).shape == (4_001, 4_001)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_that_of_the_result() -> None:
    """A star of 4,000 nodes has 16 million pairs: 61 MiB."""
    probe = subprocess.run([sys.executable, "-c", MEMORY_PROBE], capture_output=True, text=True, check=True)
    assert int(probe.stdout) < 200 * 1024


def test_a_clique_has_many_walks_and_no_pairs() -> None:
    n = 300
    edges = torch.tensor([[i, j] for i in range(n) for j in range(n) if i != j]).T
    found = two_hop_adjacency(edges, n)
    assert found.to_dense().eq(0).all()


def test_full_neighbourhoods_are_kept_dense() -> None:
    data = small_graph()
    data.x, data.edge_index = torch.ones(41, 2), star(40)
    _, one_hop, two_hop = H2GCNConfig().inputs(data, None, seed=0)
    assert isinstance(one_hop, SparseMatrix)
    assert isinstance(two_hop, torch.Tensor)
    torch.testing.assert_close(two_hop[1:, 1:], (1 - torch.eye(40)) / 39)
