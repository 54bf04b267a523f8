import os
import signal
import threading
import time
from collections import deque

import pytest
import torch

from gcnsl import InputError
from gcnsl.workers.executor import Crew, TooSlow, WorkerLost
from gcnsl.workers.processes import Processes, Worker, watching


def test_workers_share_the_cores(monkeypatch) -> None:
    monkeypatch.setattr("gcnsl.workers.processes.cpu_count", lambda: 16)
    assert [Worker.one_of(jobs).threads for jobs in (1, 4, 5, 32)] == [16, 4, 3, 1]
    assert Worker.one_of(1).parent == os.getpid()


def test_an_orphan_ends_itself(monkeypatch) -> None:
    def exited(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", exited)
    Worker(os.getppid(), 1).stop_if_orphaned()
    with pytest.raises(SystemExit):
        Worker(os.getppid() + 1, 1).stop_if_orphaned()


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


class Counting:
    """Remembers how often it was called, and where."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, item: str) -> tuple[int, int, int]:
        self.calls += 1
        if item == "grow":
            self.memory = bytearray(os.urandom(1)) * 400_000_000
            time.sleep(1.1)  # loky looks at the memory of its processes every second
        if item == "slow":
            time.sleep(600)
        if item == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid(), self.calls, torch.get_num_threads()


def test_processes_keep_what_they_were_given_and_are_replaced_if_they_die() -> None:
    with Processes(2) as executor:
        assert executor.slots == 2
        found = dict(executor.each(Counting(), deque(["a", "b", "c", "d", "e"])))
        assert {threads for _, _, threads in found.values()} == {Worker.one_of(2).threads}
        assert len({process for process, _, _ in found.values()}) <= 2
        assert max(calls for _, calls, _ in found.values()) >= 3, "the same function serves one item after another"
        items = deque(["die"])
        for item, result in executor.each(Counting(), items):
            if item == "die":
                assert isinstance(result, WorkerLost)
                assert "killed" in str(result)
                items.append("go on")
        assert result[1] == 1
    with pytest.raises(InputError, match=r"jobs\(0\) must be >= 1"):
        Processes(0)


def test_a_process_that_has_grown_keeps_what_it_was_given() -> None:
    with Processes(1) as executor:
        found = dict(executor.each(Counting(), deque(["a", "grow", "b"])))
    assert [calls for _, calls, _ in found.values()] == [1, 2, 3]
    assert len({process for process, _, _ in found.values()}) == 1


def test_what_is_slow_is_killed_and_the_others_go_on() -> None:
    found = {}
    with Processes(2) as executor, Crew(executor, Counting()) as crew:
        assert not crew.has_room, "no process has started yet"
        waiting = ["slow", "a", "b"]
        while waiting or crew.running:
            while waiting and crew.has_room:
                crew.submit(waiting[0], seconds=2 if waiting.pop(0) == "slow" else 300)
            found |= dict(crew.wait(60))
        assert isinstance(found.pop("slow"), TooSlow)
        assert found.keys() == {"a", "b"}
        while not crew.has_room:
            assert dict(crew.wait(60)) == {}
        crew.submit("slow")
        assert dict(crew.wait(0.1)) == {}
        assert crew.running == ["slow"], "which is not awaited when the workers are left"


class KillsWhoReadsIt:
    """A function; so many processes that read it are killed."""

    def __init__(self, folder, count: int) -> None:
        self.folder, self.count = folder, count

    def __setstate__(self, state) -> None:
        self.__dict__ = state
        for number in range(self.count):
            try:
                (self.folder / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, item: int) -> int:
        return 2 * item


def test_a_process_that_is_killed_while_it_starts_is_replaced(tmp_path) -> None:
    with Processes(2) as processes:
        found = dict(processes.each(KillsWhoReadsIt(tmp_path, 3), deque([1, 2, 3])))
    assert found == {1: 2, 2: 4, 3: 6}


def test_if_all_are_killed_while_they_start_it_is_said(tmp_path) -> None:
    with Processes(2) as processes, pytest.raises(InputError, match=r"killed while they started.*: use fewer of them"):
        list(processes.each(KillsWhoReadsIt(tmp_path, 100), deque([1])))
