import multiprocessing
import subprocess
import sys

import pytest
import torch
from reconnection_cases import Case, assert_close, make_case
from torch.nn.functional import normalize

from gcnsl.reconnection import neighbourhoods, numba_backend, pairs, threads
from gcnsl.reconnection.pairs import Regime


def regime_of(case: Case) -> Regime:
    keys = case.z if case.keys is None else case.keys
    return Regime(int(numba_backend.forward(case.z, keys, case.h, case.epsilon)[2].regime))


def forced_case(regime: Regime, m: int | None, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A case that runs in the given regime, with budgets set so that a small one does."""
    monkeypatch.setattr(
        pairs, "PAIRS_PER_ROW", dict.fromkeys(pairs.PAIRS_PER_ROW, 200 if regime == Regime.LISTED else 10)
    )
    monkeypatch.setattr(numba_backend, "DENSE_FRACTION", 0.05 if regime == Regime.TILED else 1.0)
    monkeypatch.setattr(neighbourhoods, "STREAMED_ROWS", 50)
    monkeypatch.setattr(threads, "WORK_PER_SHARE", 1 << 10)
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


def test_the_list_is_sorted_symmetric_and_complete() -> None:
    case = make_case(n=700, m=None, q=6, p=2, kind="few", seed=1, zero_rows=4, duplicates=3)
    kept = numba_backend.forward(case.z, case.z, case.h, case.epsilon)[2]
    listed = torch.zeros(700, 700, dtype=torch.bool)
    for i in range(700):
        columns = kept.columns[kept.start[i] : kept.start[i + 1]].long()
        assert bool((columns.diff() > 0).all())
        listed[i, columns] = True
    assert torch.equal(listed, case.z.double() @ case.z.double().T >= case.epsilon)


@pytest.mark.parametrize("m", [None, 800])
def test_the_list_never_outgrows_its_room(m: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One degree below and one above the budget: the list is full to the last place, or there is none."""
    monkeypatch.setattr(numba_backend, "DENSE_FRACTION", 1.0)
    case = make_case(n=900, m=m, q=12, p=2, kind="some", seed=1)
    keys = case.z if m is None else case.keys
    degree = (case.z @ keys.T >= case.epsilon).sum().item() / 900
    for room, expected in ((degree + 1, Regime.LISTED), (degree - 1, Regime.STREAMED)):
        monkeypatch.setattr(pairs, "PAIRS_PER_ROW", dict.fromkeys(pairs.PAIRS_PER_ROW, int(room)))
        kept = numba_backend.forward(case.z, keys, case.h, case.epsilon)[2]
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


def test_an_error_in_a_thread_is_raised_in_the_caller() -> None:
    def work(part: int, begin: int, end: int) -> int:
        if part == 2:
            raise ValueError(f"rows {begin} to {end}")
        return part

    with pytest.raises(ValueError, match="rows 20 to 30"):
        threads.in_threads(work, [0, 10, 20, 30, 40])
    assert threads.in_threads(lambda part, begin, end: part * (end - begin), [0, 1, 3, 6]) == [0, 2, 6]


def test_numba_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, gcnsl.reconnection; sys.exit('numba' in sys.modules or 'triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
