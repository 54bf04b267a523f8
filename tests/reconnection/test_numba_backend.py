import multiprocessing
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.reconnection import numba_backend, numba_pairs, pairs, threads
from gcnsl.reconnection.pairs import Regime

from .cases import Case, assert_close, cases, make_case


def regime_of(case: Case) -> Regime:
    return numba_backend.forward(case.problem()).pairs.regime


def use(regime: Regime, patch: pytest.MonkeyPatch) -> None:
    """Set the budgets so that small cases run in the given regime, in several shares."""
    patch.setattr(pairs, "PAIRS_PER_ROW", {"cpu": 10_000 if regime == Regime.LISTED else 0})
    patch.setattr(numba_backend, "DENSE_FRACTION", -1.0 if regime == Regime.TILED else 1.0)
    patch.setattr(numba_pairs, "STREAMED_ROWS", 50)
    patch.setattr(threads, "WORK_PER_SHARE", 1 << 10)


@given(cases(largest=700), st.sampled_from([Regime.LISTED, Regime.STREAMED, Regime.TILED]))
@settings(max_examples=30, deadline=None)
def test_values_and_gradients_in_float64(case: Case, regime: Regime) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(regime, patch)
        assert_close(case.run("numba", dtype=torch.float64), case.expected(), tolerance=1e-11)


def forced_case(regime: Regime, m: int | None, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A case that runs in the given regime."""
    use(regime, monkeypatch)
    return make_case(n=611, m=m, q=19, p=9, kind="some", seed=8, zero_rows=3, duplicates=4)


@pytest.mark.parametrize("m", [None, 450])
@pytest.mark.parametrize("regime", [Regime.LISTED, Regime.STREAMED, Regime.TILED])
def test_each_regime_gives_the_same_result(regime: Regime, m: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    case = forced_case(regime, m, monkeypatch)
    assert regime_of(case) == regime
    assert_close(case.run("numba"), case.expected())


@pytest.mark.parametrize("regime", [Regime.LISTED, Regime.STREAMED])
def test_the_number_of_threads_changes_no_bit(regime: Regime, monkeypatch: pytest.MonkeyPatch) -> None:
    case = forced_case(regime, None, monkeypatch)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(case.run("numba"))
    finally:
        torch.set_num_threads(before)
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], result, strict=True))


@pytest.mark.parametrize("m", [None, 800])
def test_the_list_never_outgrows_its_room(m: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One degree below and one above the budget: the list is full to the last place, or there is none."""
    monkeypatch.setattr(numba_backend, "DENSE_FRACTION", 1.0)
    case = make_case(n=900, m=m, q=12, p=2, kind="some", seed=1)
    keys = case.z if m is None else case.keys
    degree = (case.z @ keys.T >= case.epsilon).sum().item() / 900
    for room, expected in ((degree + 1, Regime.LISTED), (degree - 1, Regime.STREAMED)):
        monkeypatch.setattr(pairs, "PAIRS_PER_ROW", dict.fromkeys(pairs.PAIRS_PER_ROW, int(room)))
        kept = numba_backend.forward(case.problem()).pairs
        assert len(kept.columns) == 900 * int(room)
        assert kept.regime == expected


def test_a_few_crowded_rows_do_not_mislead_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampled rows keep one column each, all others thousands: the search must notice and stream."""
    monkeypatch.setattr(numba_backend, "SAMPLED_ROWS", 4)
    z = normalize(torch.ones(2000, 8) + 0.01 * torch.randn(2000, 8, generator=torch.Generator().manual_seed(0)))
    z[::500] = torch.eye(8)[:4]
    case = Case(z, torch.randn(2000, 2, generator=torch.Generator().manual_seed(1)), 0.9, None)
    assert regime_of(case) == Regime.STREAMED
    assert_close(case.run("numba"), case.expected())


MEMORY_PROBE = """
import resource, sys, torch
from gcnsl.reconnection import reconnect
n, epsilon = int(sys.argv[1]), float(sys.argv[2])
z = torch.nn.functional.normalize(torch.rand(n, 16, generator=torch.Generator().manual_seed(0)), dim=1).requires_grad_()
h = torch.randn(n, 64, requires_grad=True)
reconnect(z[:600], h[:600], epsilon, backend="numba").sum().backward()
z.grad, h.grad = None, None
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reconnect(z, h, epsilon, backend="numba").sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("epsilon", [0.999, 0.95, 0.01])
def test_memory_stays_far_below_the_matrix(epsilon: float) -> None:
    """At n = 9,000 the matrix alone takes 324 MB, a tile 36 MB."""
    n = 9_000
    probe = subprocess.run(
        [sys.executable, "-c", MEMORY_PROBE, str(n), str(epsilon)], capture_output=True, text=True, check=True
    )
    assert int(probe.stdout) * 1024 < 160e6


def _run_in_fork(queue: "multiprocessing.Queue[bool]", case: Case) -> None:
    queue.put(bool(case.run("numba")[0].isfinite().all()))


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch has no gradients in a fork of a process that used a GPU")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_in_a_fork_of_a_process_that_used_it() -> None:
    case = make_case(n=611, m=None, q=19, p=9, kind="few", seed=8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # torch's own threads do not survive a fork; ours must not mind
    try:
        case.run("numba")
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        process = context.Process(target=_run_in_fork, args=(queue, case))
        process.start()
        assert queue.get(timeout=60)
        process.join()
    finally:
        torch.set_num_threads(threads)
