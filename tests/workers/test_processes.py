import os
import threading

import pytest

from gcnsl.workers.processes import Worker, watching


def test_workers_share_the_cores(monkeypatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert [Worker.one_of(jobs).threads for jobs in (1, 4, 5, 32)] == [16, 4, 3, 1]
    assert Worker.one_of(1).parent == os.getpid()


def test_an_orphan_ends_itself(monkeypatch) -> None:
    def exited(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", exited)
    Worker(os.getppid(), 1).stop_if_orphaned(None)
    with pytest.raises(SystemExit):
        Worker(os.getppid() + 1, 1).stop_if_orphaned(None)


def test_one_looks_now_and_then_and_once_more_at_the_end() -> None:
    looks, enough = [], threading.Event()

    def look() -> None:
        looks.append(threading.current_thread())
        if len(looks) == 3:
            enough.set()

    with watching(look, every=0.01):
        assert enough.wait(10)
        before_the_end = len(looks)
    assert len(looks) > before_the_end
    assert threading.main_thread() not in looks


def test_a_look_follows_an_error_too() -> None:
    looks = []
    with pytest.raises(ValueError, match="work"), watching(lambda: looks.append(1), every=60):
        raise ValueError("work")
    assert looks == [1]
