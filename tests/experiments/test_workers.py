import os

import pytest

from gcnsl.experiments.workers import Worker


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
