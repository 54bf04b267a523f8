"""The GPU's kernels. They run on a GPU if there is one, else under Triton's interpreter, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.execution import recorded
from gcnsl.reconnection import problem as limits
from gcnsl.reconnection import reconnect
from gcnsl.reconnection.problem import Problem

from .cases import Case, assert_close, cases, make_case
from .test_loops import by_pairs, random_problem

pytest.importorskip("triton", reason="triton is not installed")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if torch.cuda.is_available() and not INTERPRETED else "cpu"
LARGE = DEVICE == "cuda"
RUNS_KERNELS = INTERPRETED or LARGE
needs_kernels = pytest.mark.skipif(not RUNS_KERNELS, reason="runs in the interpreter's own process")

sizes = st.integers(1, 24)
kinds = st.sampled_from(["few", "some", "all"])
small_cases = st.builds(make_case, sizes, st.none() | sizes, sizes, sizes, kinds, st.integers(0, 99))
odd_cases = cases() if LARGE else small_cases.filter(lambda case: case.clearance() > 4e-6)
"""Cases of odd shapes; few rows under the interpreter, which takes a millisecond per entry."""


def run(case: Case) -> tuple[bool, list[torch.Tensor]]:
    """Whether the pairs of a case are listed; its output and gradients."""
    from gcnsl.reconnection import triton_backend

    averages = triton_backend.forward(case.problem(device=DEVICE))
    return averages.pairs is not None, case.run("triton", DEVICE)


def use(listed: bool, patch: pytest.MonkeyPatch) -> None:
    """Make room for lists, or none, and take no graph for small."""
    from gcnsl.reconnection import triton_backend

    patch.setattr(limits, "PAIRS_PER_ROW", dict.fromkeys(limits.PAIRS_PER_ROW, 300 if listed else 0))
    patch.setattr(triton_backend, "SMALL_PAIRS", 0)


@pytest.mark.slow
@pytest.mark.skipif(RUNS_KERNELS, reason="the kernels run in this process")
def test_under_the_interpreter() -> None:
    """Run this and the other tests of kernels in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(Path(__file__))]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout


@pytest.fixture(autouse=True)
def small_graphs_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs small enough for a test would all be done in tiles."""
    if RUNS_KERNELS:
        from gcnsl.reconnection import triton_backend

        monkeypatch.setattr(triton_backend, "SMALL_PAIRS", 0)


@needs_kernels
@pytest.mark.parametrize(
    ("kind", "n", "m", "q", "p"),
    [
        ("few", 66, None, 5, 9),
        ("all", 20, None, 16, 20),
        ("some", 5, 66, 17, 20),
        ("all", 12, 5, 3, 33),
        ("diagonal", 10, None, 3, 2),
        ("some", 1, 1, 1, 1),
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_agrees_with_the_oracle(  # noqa: PLR0917
    kind: str, n: int, m: int | None, q: int, p: int, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(listed, monkeypatch)
    case = make_case(n, m, q, p, kind, seed=4, zero_rows=min(2, n - 1), duplicates=min(3, n))
    ran_in, results = run(case)
    if kind != "diagonal" and n > 1:
        assert ran_in == listed
    assert_close(results, case.expected())


@needs_kernels
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_loops_are_kept_or_left_out(loops: bool, listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use(listed, monkeypatch)
    made = [random_problem(seed, torch.float32) for seed in range(300 if LARGE else 12)]
    for z, h, epsilon, grad in (problem for problem in made if problem is not None):
        least = min(epsilon, 1 - 1e-6)
        expected = by_pairs(z.double().numpy(), h.double().numpy(), least, grad.numpy(), loops=loops)
        leaves = [tensor.to(DEVICE).requires_grad_() for tensor in (z, h)]
        out = reconnect(*leaves, epsilon, loops=loops, backend="triton")
        out.backward(grad.float().to(DEVICE))
        assert_close([out, *(leaf.grad for leaf in leaves)], [torch.from_numpy(array) for array in expected])


@needs_kernels
@pytest.mark.skipif(not LARGE, reason="too large for the interpreter")
@pytest.mark.parametrize("kind", ["diagonal", "few", "some", "all"])
@pytest.mark.parametrize(("n", "m", "q", "p"), [(2999, None, 16, 64), (2048, 3000, 33, 100), (1500, None, 200, 256)])
def test_large_sizes(kind: str, n: int, m: int | None, q: int, p: int) -> None:
    case = make_case(n, m, q, p, kind, seed=4, zero_rows=5, duplicates=5)
    assert_close(run(case)[1], case.expected())


@needs_kernels
@pytest.mark.parametrize("listed", [True, False])
def test_threshold_decisions_agree_with_float64(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With h the unit matrix the output is Â*: which entries are there tells which pairs were kept."""
    use(listed, monkeypatch)
    n = 256 if LARGE else 16
    generator = torch.Generator().manual_seed(0)
    for q in (3, 16, 64):
        z = normalize(torch.randn(n, q, generator=generator), dim=1)
        exact = z.double() @ z.double().T
        for epsilon in (0.1, 0.5, 0.9, float(exact[0, 1].abs())):
            kept = reconnect(z.to(DEVICE), torch.eye(n).to(DEVICE), epsilon, backend="triton").cpu() > 0
            unlike = kept != (exact >= epsilon)
            assert bool(((exact - epsilon).abs()[unlike] <= 1e-6).all())


@needs_kernels
@pytest.mark.skipif(not LARGE, reason="needs a GPU")
def test_memory_on_the_device() -> None:
    """At n = 19,717 and a few neighbours: 64 MiB where the matrix takes 1.5 GiB."""
    z = normalize(torch.randn(19_717, 16, device=DEVICE), dim=1).requires_grad_()
    h = torch.randn(19_717, 64, device=DEVICE, requires_grad=True)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    reconnect(z, h, 0.76).sum().backward()
    assert torch.cuda.max_memory_allocated() - before < 64 * 2**20


@needs_kernels
@given(odd_cases)
@settings(max_examples=30 if LARGE else 8, deadline=None)
def test_listed_pairs_give_the_values_and_gradients_of_the_oracle(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(True, patch)
        assert_close(case.run("triton", DEVICE), case.expected())


@needs_kernels
@pytest.mark.parametrize("m", [None, 70])
def test_candidates_are_the_pairs_near_the_threshold_or_above(m: int | None) -> None:
    """Every kept pair is a candidate, and no candidate is further below the threshold than twice the margin."""
    from gcnsl.reconnection import triton_backend

    generator = torch.Generator().manual_seed(0)
    z, keys = (normalize(torch.randn(n, 5, generator=generator), dim=1).to(DEVICE) for n in (66, m or 66))
    keys = z if m is None else keys
    problem = Problem.of(z, None if m is None else keys, keys, torch.tensor([0.3], device=DEVICE))
    with pytest.MonkeyPatch.context() as patch:
        use(True, patch)
        listed = triton_backend.candidates(problem, problem.threshold).long()
    listed = listed[listed < 66 * len(keys)]  # the diagonal is counted twice and written once
    assert len(listed.unique()) == len(listed)
    candidate = torch.zeros(66 * len(keys), dtype=torch.bool, device=DEVICE)
    candidate[listed] = True
    exact = (z.double() @ keys.double().T).flatten()
    assert bool(candidate[exact >= 0.3].all())
    assert not bool(candidate[exact < 0.3 - 2 * triton_backend.MARGIN].any())


@needs_kernels
def test_more_candidates_than_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search stops when the list is full, and says so, at every size of the list."""
    use(True, monkeypatch)
    case = make_case(2000 if LARGE else 30, None, 16, 3, "some", seed=4)
    degree = int((case.z @ case.z.T >= case.epsilon).sum()) // len(case.z)
    for per_row, listed in (
        (0, False),
        (1, False),
        (degree - 1, False),
        (degree + 5, True),
    ):
        monkeypatch.setattr(limits, "PAIRS_PER_ROW", dict.fromkeys(limits.PAIRS_PER_ROW, per_row))
        ran_in, results = run(case)
        assert ran_in == listed
        assert_close(results, case.expected())


@needs_kernels
def test_small_graphs_and_recorded_work_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcnsl.reconnection import triton_backend

    use(True, monkeypatch)
    monkeypatch.setattr(triton_backend, "candidates", lambda *_: pytest.fail("the host has looked"))
    case = make_case(20, None, 4, 3, "some", seed=4)
    with recorded():
        assert_close(case.run("triton", DEVICE), case.expected())
    monkeypatch.setattr(triton_backend, "SMALL_PAIRS", 400)
    assert_close(case.run("triton", DEVICE), case.expected())
