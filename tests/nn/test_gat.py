import numpy as np
import pytest

from gcnsl.nn import GAT, GATConfig

from .cases import CLASSES, D, N, P, adjacency_matrix, both_forms, drawn, small_graph, weights

HEADS = 3


def attend(H: np.ndarray, A: np.ndarray, w: dict, layer: str, heads: int) -> np.ndarray:
    """One layer, neighbour by neighbour."""
    HW = (H @ w[f"{layer}.lin.weight"]).reshape(N, heads, -1)
    to_source, to_target = w[f"{layer}.attention.att_src"][0], w[f"{layer}.attention.att_dst"][0]
    out = np.zeros_like(HW)
    for i in range(N):
        neighbours = [j for j in range(N) if A[i, j] or i == j]
        for head in range(heads):
            scores = np.array([HW[j, head] @ to_source[head] + HW[i, head] @ to_target[head] for j in neighbours])
            scores = np.where(scores > 0, scores, 0.2 * scores)
            alpha = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
            out[i, head] = sum(a * HW[j, head] for a, j in zip(alpha, neighbours, strict=True))
    return out.reshape(N, -1) + w[f"{layer}.attention.bias"]


@pytest.mark.usefixtures("double")
def test_is_the_equation() -> None:
    data = small_graph()
    x, edges = data.x.double(), GATConfig().inputs(data, None, seed=0)[1]
    model = drawn(GAT(D, P, CLASSES, heads=HEADS))
    w, A = weights(model), adjacency_matrix(data)
    H = attend(x.numpy(), A, w, "first", HEADS)
    H = np.where(H > 0, H, np.exp(np.minimum(H, 0)) - 1)
    expected = attend(H, A, w, "second", 1)
    for features in both_forms(x):
        np.testing.assert_allclose(model(features, edges).detach().numpy(), expected, rtol=1e-8, atol=1e-10)
