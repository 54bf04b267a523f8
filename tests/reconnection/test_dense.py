import torch
from hypothesis import given, settings

from gcnsl.reconnection import dense, reconnect

from .cases import Case, assert_close, cases, make_case


def test_the_oracle_is_the_formula() -> None:
    case = make_case(n=9, m=None, q=4, p=3, kind="some", seed=0, zero_rows=1, duplicates=2)
    z, h = case.z.double(), case.h.double()
    for i in range(len(z)):
        weights = [s if (s := float(z[i] @ z[j])) >= case.epsilon else 0.0 for j in range(len(z))]
        expected = sum(w * h[j] for j, w in enumerate(weights)) / (sum(weights) or 1.0)
        assert torch.allclose(case.expected()[0][i], torch.as_tensor(expected, dtype=torch.float64).expand(3))


def test_equals_the_dense_function_under_autograd() -> None:
    case = make_case(n=80, m=None, q=8, p=5, kind="few", seed=4)
    z, h = case.leaves()
    assert torch.equal(reconnect(z, h, case.epsilon, backend="dense"), dense.reconnect(z, z, h, case.epsilon))


@given(cases(largest=400))
@settings(max_examples=10, deadline=None)
def test_values_and_gradients_in_float64(case: Case) -> None:
    assert_close(case.run("dense", dtype=torch.float64), case.expected(), tolerance=1e-11)
