import os
import signal
import threading
import time

import pytest
import torch

from gcnsl.reconnection import threads


def test_an_error_in_a_thread_is_raised_in_the_caller() -> None:
    def work(part: int, begin: int, end: int) -> int:
        if part == 2:
            raise ValueError(f"rows {begin} to {end}")
        return part

    with pytest.raises(ValueError, match="rows 20 to 30"):
        threads.in_threads(work, [0, 10, 20, 30, 40])
    assert threads.in_threads(lambda part, begin, end: part * (end - begin), [0, 1, 3, 6]) == [0, 2, 6]


def test_every_row_has_its_turn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORK_PER_SHARE", 10)
    visits = torch.zeros(1000, dtype=torch.int64)

    def visit(begin: int, end: int) -> None:
        visits[begin:end] += 1

    threads.for_rows(visit, 1000, 3)
    assert visits.eq(1).all()


def test_little_work_is_not_shared() -> None:
    assert threads.shares(100).tolist() == [0, 1]
    assert len(threads.shares(1 << 30)) == torch.get_num_threads() * threads.SHARES_PER_THREAD + 1


def test_no_share_of_much_work_is_long() -> None:
    bounds = threads.shares(1 << 44)
    assert max(bounds[1:] - bounds[:-1]) * 2**44 <= threads.LONGEST_SHARE * 1.001


def test_ctrl_c_that_numba_wraps_is_unwrapped() -> None:
    def work(*_: int) -> None:
        wrapped = SystemError("returned a result with an exception set")
        wrapped.__cause__ = KeyboardInterrupt()
        raise SystemError("again") from wrapped

    with pytest.raises(KeyboardInterrupt):
        threads.in_threads(work, [0, 1])


def test_a_long_call_does_not_delay_ctrl_c() -> None:
    assert threads.interruptible(lambda: 7, work=1) == threads.interruptible(lambda: 7, work=1 << 40) == 7
    began = time.monotonic()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        threads.interruptible(lambda: time.sleep(3), work=1 << 40)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("slow", [0.0, 0.02])
def test_after_ctrl_c_no_part_is_begun(slow) -> None:
    begun = []

    def work(part: int, begin: int, end: int) -> None:
        begun.append(part)
        if part == 3:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(slow)

    with pytest.raises(KeyboardInterrupt):
        threads.in_threads(work, range(1001))
    soon = len(begun)
    time.sleep(0.1)
    assert len(begun) <= soon + torch.get_num_threads()
    assert len(begun) < 1000
