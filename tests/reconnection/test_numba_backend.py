"""The compiled back end: its search, its list of pairs, its kernels and its threads."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from gcnsl.reconnection import numba_backend
from gcnsl.reconnection import problem as limits
from gcnsl.reconnection.numba_backend import UNLIMITED, WIDTH, Search, find_rows, mirrored

from .cases import Case, assert_close, cases, make_case


@pytest.fixture(params=[True, False], ids=["listed", "tiles"])
def listed(request, monkeypatch) -> bool:
    """Small cases are worked on in several shares, as a list or in tiles."""
    monkeypatch.setattr(numba_backend, "DENSE_FRACTION", 1.0 if request.param else -1.0)
    monkeypatch.setattr(numba_backend, "WORK_PER_SHARE", 1 << 10)
    return bool(request.param)


@given(cases(largest=700))
@settings(max_examples=30, deadline=None)
def test_values_and_gradients_in_float64(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba_backend, "DENSE_FRACTION", 1.0)
        patch.setattr(numba_backend, "WORK_PER_SHARE", 1 << 10)
        assert_close(case.run("numba", dtype=torch.float64), case.expected(), tolerance=1e-11)


@pytest.mark.parametrize("m", [None, 450])
def test_a_list_and_tiles_give_the_same_result(listed: bool, m: int | None) -> None:
    case = make_case(n=611, m=m, q=19, p=9, kind="some", seed=8, zero_rows=3, duplicates=4)
    assert (numba_backend.forward(case.problem()).pairs is not None) == listed
    assert_close(case.run("numba"), case.expected())


def test_the_number_of_threads_changes_no_bit(listed: bool) -> None:
    case = make_case(n=611, m=None, q=19, p=9, kind="some", seed=8, zero_rows=3, duplicates=4)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(case.run("numba"))
    finally:
        torch.set_num_threads(before)
    for result in results[1:] if listed else ():
        assert all(torch.equal(a, b) for a, b in zip(results[0], result, strict=True))


@pytest.mark.parametrize("m", [None, 800])
def test_the_list_never_outgrows_its_room(m: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_backend, "DENSE_FRACTION", 1.0)
    case = make_case(n=900, m=m, q=12, p=2, kind="some", seed=1)
    keys = case.z if m is None else case.keys
    degree = (case.z @ keys.T >= case.epsilon).sum().item() / 900
    for room in (degree + 1, degree - 1):
        monkeypatch.setattr(limits, "PAIRS_PER_ROW", {"cpu": int(room)})
        assert (numba_backend.forward(case.problem()).pairs is not None) == (room > degree)


def test_a_few_crowded_rows_do_not_mislead_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampled rows keep one column each, all others thousands: the search must notice and give up."""
    monkeypatch.setattr(limits, "SAMPLED_ROWS", 4)
    z = normalize(torch.ones(2000, 8) + 0.01 * torch.randn(2000, 8, generator=torch.Generator().manual_seed(0)))
    z[::500] = torch.eye(8)[:4]
    case = Case(z, torch.randn(2000, 2, generator=torch.Generator().manual_seed(1)), 0.9, None)
    assert numba_backend.forward(case.problem()).pairs is None
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


@pytest.mark.parametrize("epsilon", [0.999, 0.01])
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
    before = torch.get_num_threads()
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
        torch.set_num_threads(before)


@given(st.integers(0, 70), st.integers(0, 2**31), st.floats(0, 1))
def test_mirrored_pairs_are_the_symmetric_matrix(n: int, seed: int, density: float) -> None:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density)
    rows, columns = upper.nonzero()
    start, both = mirrored(np.searchsorted(rows, np.arange(n + 1)).astype(np.int64), columns.astype(np.int32))
    rows, columns = (upper | upper.T).nonzero()
    assert np.array_equal(both, columns)
    assert np.array_equal(start, np.searchsorted(rows, np.arange(n + 1)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("m", "q"), [(1, 16), (WIDTH - 1, 1), (WIDTH, 15), (WIDTH + 1, 17)])
def test_keys_and_entries_beside_a_full_tile(m: int, q: int, dtype: torch.dtype) -> None:
    case = make_case(n=40, m=m, q=q, p=1, kind="some", seed=3, zero_rows=1)
    z, keys, _, threshold, *_ = problem = case.problem(dtype)
    searched = Search.of(problem)
    found = np.zeros(1, np.int64)
    search = searched.rows, searched.tiles, threshold, 5, 33, False, UNLIMITED, True
    counts, columns = find_rows(*search, found, 0, UNLIMITED)
    rows, expected = (z[5:33].double() @ keys.double().T >= threshold).nonzero().T
    assert torch.equal(torch.from_numpy(columns).long(), expected)
    assert torch.equal(torch.from_numpy(counts), torch.bincount(rows, minlength=28))
    assert found[0] == len(expected)


def test_an_error_in_a_thread_is_raised_in_the_caller() -> None:
    def work(part: int, begin: int, end: int) -> int:
        if part == 2:
            raise ValueError(f"rows {begin} to {end}")
        return part

    with pytest.raises(ValueError, match="rows 20 to 30"):
        numba_backend.in_threads(work, [0, 10, 20, 30, 40])
    assert numba_backend.in_threads(lambda part, begin, end: part * (end - begin), [0, 1, 3, 6]) == [0, 2, 6]


def test_ctrl_c_that_numba_wraps_is_unwrapped() -> None:
    def work(*_: int) -> None:
        wrapped = SystemError("returned a result with an exception set")
        wrapped.__cause__ = KeyboardInterrupt()
        raise SystemError("again") from wrapped

    with pytest.raises(KeyboardInterrupt):
        numba_backend.in_threads(work, [0, 1])


@pytest.mark.parametrize("slow", [0.0, 0.02])
def test_after_ctrl_c_no_part_is_begun(slow) -> None:
    begun = []

    def work(part: int, begin: int, end: int) -> None:
        begun.append(part)
        if part == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(slow)

    with pytest.raises(KeyboardInterrupt):
        numba_backend.in_threads(work, range(1001))
    soon = len(begun)
    time.sleep(0.1)
    assert len(begun) <= soon + torch.get_num_threads()
    assert len(begun) < 1000
