import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

from gcnsl import InputError, synthetic
from gcnsl.nn import H2GCN, H2GCNConfig
from gcnsl.nn.h2gcn import two_hop_edges
from gcnsl.sparse import SparseMatrix

from .cases import CLASSES, D, N, P, adjacency_matrix, both_forms, drawn, small_graph, symmetric, weights


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


@given(st.integers(8, 30), st.floats(0.5, 3), st.integers(0, 99))
def test_two_hops_are_distance_two(n, degree, seed) -> None:
    edges = synthetic(n=n, h=0.5, classes=2, degree=degree, features=8, seed=seed).edge_index
    edges = torch.cat([edges, torch.tensor([[1], [1]])], dim=1)
    A = np.zeros((n, n))
    A[tuple(edges.numpy())] = 1
    found = two_hop_edges(edges, n)
    expected = np.argwhere(shortest_path(A, unweighted=True) == 2).T
    np.testing.assert_array_equal(found.numpy(), expected)


def test_full_neighbourhoods_are_kept_dense() -> None:
    star = torch.tensor([[0] * 40 + list(range(1, 41)), list(range(1, 41)) + [0] * 40])
    data = small_graph()
    data.x, data.edge_index = torch.ones(41, 2), star
    _, one_hop, two_hop = H2GCNConfig().inputs(data, None, seed=0)
    assert isinstance(one_hop, SparseMatrix)
    assert isinstance(two_hop, torch.Tensor)
    torch.testing.assert_close(two_hop[1:, 1:], (1 - torch.eye(40)) / 39)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, r"rounds\(0\) must be from 1 to 8"),
        ({"hidden_channels": 0}, r"hidden_channels\(0\) must be >= 1"),
        ({"dropout": 1.0}, r"dropout\(1.0\) must be >= 0 and < 1"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(InputError, match=message):
        H2GCNConfig(**arguments).build(D, CLASSES, N)
