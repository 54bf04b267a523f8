import numpy as np
import pytest
import torch

from gcnsl.reconnection import numba_backend, reconnect, reconnected_edges, tiled

from .cases import assert_close, make_case

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def by_pairs(z: np.ndarray, h: np.ndarray, epsilon: float, grad: np.ndarray, *, loops: bool) -> Arrays:
    """o, ∂L/∂z and ∂L/∂h, one row and one pair at a time."""
    out, grad_z, grad_h = np.zeros_like(grad), np.zeros_like(z), np.zeros_like(h)
    for i in range(len(z)):
        weights = {j: s for j in range(len(z)) if j != i and (s := z[i] @ z[j]) >= epsilon and s > 0}
        if loops and z[i].any():
            weights[i] = z[i] @ z[i]
        degree = sum(weights.values())
        out[i] = sum(s * h[j] for j, s in weights.items()) / degree if weights else 0
        for j, s in weights.items():
            change = grad[i] @ (h[j] - out[i]) / degree
            grad_z[i] += change * z[j]
            grad_z[j] += change * z[i]
            grad_h[j] += s * grad[i] / degree
    return out, grad_z, grad_h


def random_problem(seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, float, torch.Tensor] | None:
    """z, h, ε and a gradient; None if rounding could carry a pair across the threshold."""
    rng = np.random.default_rng(seed)
    n, q, p = rng.integers(1, 11), rng.integers(1, 5), rng.integers(1, 4)
    z = torch.nn.functional.normalize(torch.tensor(rng.standard_normal((n, q))), dim=1)
    z[rng.random(n) < 0.2] = torch.eye(int(q), dtype=torch.float64)[rng.integers(q)] * rng.choice([-1.0, 1.0])
    z[rng.random(n) < 0.2] *= 1 - 4e-5  # as near to norm 1 as is accepted
    z[rng.random(n) < 0.1] = 0
    z = z.to(dtype)
    epsilon = float(rng.choice([0.0, 0.0, 0.3, 0.8, 1.0]))
    rounding = {torch.float32: 1e-6, torch.float64: 1e-14}[dtype]
    similarity = (z.double() @ z.double().T)[~torch.eye(int(n), dtype=torch.bool)]
    clear = (similarity - min(epsilon, 1 - rounding)).abs() > (rounding / 2 if epsilon else 0.01)
    if not bool((clear | (similarity == 0)).all()):
        return None
    return z, torch.tensor(rng.standard_normal((n, p)), dtype=dtype), epsilon, torch.tensor(rng.standard_normal((n, p)))


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-4), (torch.float64, 1e-11)])
def test_values_and_gradients_agree_with_pairs_counted_one_by_one(backend, dtype, tolerance, loops) -> None:
    tried = 0
    for seed in range(800):
        if (made := random_problem(seed, dtype)) is None:
            continue
        z, h, epsilon, grad = made
        least = min(epsilon, 1 - {torch.float32: 1e-6, torch.float64: 1e-14}[dtype])
        expected = by_pairs(z.double().numpy(), h.double().numpy(), least, grad.numpy(), loops=loops)
        out = reconnect(z.requires_grad_(), h.requires_grad_(), epsilon, loops=loops, backend=backend)
        out.backward(grad.to(dtype))
        for got, wanted in zip((out.detach(), z.grad, h.grad), expected, strict=True):
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(got.double().numpy() / scale, wanted / scale, atol=tolerance, err_msg=f"{seed}")
        tried += 1
    assert tried > 300


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("loops", [True, False])
def test_listed_pairs_and_tiles_know_which_key_a_row_is(listed: bool, loops: bool, monkeypatch) -> None:
    monkeypatch.setattr(numba_backend, "DENSE_FRACTION", 1.0 if listed else -1.0)
    monkeypatch.setattr(tiled, "TILE_SIDE", {"cpu": 100})
    case = make_case(n=300, m=None, q=6, p=3, kind="some", seed=1, zero_rows=3, duplicates=4)
    case.z *= 1 - 2e-5
    z, h, grad = case.z.double().numpy(), case.h.double().numpy(), case.upstream().double().numpy()
    for epsilon in (case.epsilon, 1.0):
        expected = by_pairs(z, h, epsilon, grad, loops=loops)
        leaves = case.leaves()
        out = reconnect(*leaves, epsilon, loops=loops, backend="numba")
        out.backward(case.upstream())
        assert_close([out, *(leaf.grad for leaf in leaves)], [torch.from_numpy(array) for array in expected])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_row_that_is_shorter_than_1_keeps_its_loop_at_epsilon_1(backend: str, dtype: torch.dtype) -> None:
    z = torch.tensor([[0.99998, 0.0], [0.0, 1.0], [0.0, 0.0]]).to(dtype)
    if dtype == torch.bfloat16:
        z[0, 0] = 0.9922
    h = torch.tensor([[3.0], [4.0], [5.0]]).to(dtype)
    assert reconnect(z, h, 1.0, backend=backend).tolist() == [[3.0], [4.0], [0.0]]
    assert reconnect(z, h, 1.0, loops=False, backend=backend).eq(0).all()
    edges, _ = reconnected_edges(z, 1.0)
    assert edges.tolist() == [[0, 1], [0, 1]]


def test_edges_without_loops_are_the_same_edges() -> None:
    case = make_case(n=50, m=None, q=6, p=5, kind="few", seed=2, zero_rows=3)
    (source, target), weight = reconnected_edges(case.z, case.epsilon)
    kept = source != target
    edges, weights = reconnected_edges(case.z, case.epsilon, loops=False)
    assert edges.equal(torch.stack([source, target])[:, kept])
    assert weights.equal(weight[kept])
    normalized = reconnected_edges(case.z, case.epsilon, loops=False, normalize=True)
    out = torch.zeros(50, 5).index_add(0, edges[0], normalized[1][:, None] * case.h[edges[1]])
    torch.testing.assert_close(out, reconnect(case.z, case.h, case.epsilon, loops=False), rtol=1e-4, atol=1e-5)
