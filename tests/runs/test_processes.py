import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import pytest
import torch

from gcnsl import InputError
from gcnsl.runs import processes
from gcnsl.runs.executor import Crew, TooSlow, WorkerLost
from gcnsl.runs.processes import Processes, WorkerWarning, threads_of_each

from .watching import children, is_running, wait_until


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files, which must be empty afterwards."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


class Counting:
    """Remembers how often it was called, and where."""

    def __init__(self, folder: Path | None = None) -> None:
        self.calls, self.folder = 0, folder

    def __call__(self, item: str) -> tuple[int, int, int]:
        self.calls += 1
        tempfile.mkdtemp()  # which nobody removes
        print("not an answer")
        if item == "slow":
            time.sleep(600)
        if item == "die" or (item == "die once" and not self._is_second()):
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "refuse":
            raise Unusual("this", "that")
        return os.getpid(), self.calls, torch.get_num_threads()

    def _is_second(self) -> bool:
        try:
            (self.folder / "first").touch(exist_ok=False)
        except FileExistsError:
            return True
        return False


class Unusual(Exception):  # noqa: N818
    """Can be pickled, but not read again."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


def test_processes_keep_what_they_were_given_and_are_replaced_if_they_die(tmp_path) -> None:
    with Processes(2) as executor:
        assert executor.slots == 2
        found = dict(executor.each(Counting(), deque(["a", "b", "c", "d", "e"])))
        assert {threads for _, _, threads in found.values()} == {threads_of_each(2)}
        assert len({process for process, _, _ in found.values()}) <= 2
        assert max(calls for _, calls, _ in found.values()) >= 3, "the same function serves one item after another"
        items = deque(["die", "die once"])
        found = {}
        for item, result in executor.each(Counting(tmp_path), items):
            found[item] = result
            if item == "die":
                items.append("go on")
        assert str(found["die"]) == "its process was killed twice, perhaps for lack of memory"
        assert isinstance(found["die"], WorkerLost)
        assert {found["die once"][1], found["go on"][1]} <= {1, 2}
    with pytest.raises(InputError, match=r"jobs\(0\) must be >= 1"):
        Processes(0)


def test_errors_are_raised_here() -> None:
    with Processes(1) as executor, pytest.raises(RuntimeError, match="Unusual: this and that"):
        list(executor.each(Counting(), deque(["refuse"])))
    with Processes(1) as executor, pytest.raises(ZeroDivisionError) as caught:
        list(executor.each(divide, deque([0])))
    assert "in divide" in str(caught.value.__cause__), "the traceback of the worker"


def divide(item: int) -> float:
    return 1 / item


def test_idle_processes_that_are_killed_are_replaced(monkeypatch) -> None:
    monkeypatch.setattr(processes, "MOST_FAILED", 2)
    with Processes(2) as executor, Crew(executor, Counting()) as crew:
        seen = set()
        for round_ in range(4):
            while not crew.has_room:
                list(crew.wait(1))
            crew.submit(f"item {round_}")
            while crew.running:
                for _, result in crew.wait(1):
                    assert result[0] not in seen
                    seen.add(result[0])
            for process in executor._workers:
                process.process.kill()
                process.process.wait()
        assert len(seen) == 4, "more than may be killed while they start"


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

    def __call__(self, item: int) -> tuple[int, int]:
        return 2 * item, os.getpid()


def test_a_process_that_is_killed_while_it_starts_is_replaced(tmp_path) -> None:
    with Processes(2) as executor:
        found = dict(executor.each(KillsWhoReadsIt(tmp_path, 3), deque([1, 2, 3])))
    assert {item: double for item, (double, _) in found.items()} == {1: 2, 2: 4, 3: 6}
    assert os.getpid() not in {process for _, process in found.values()}


@pytest.mark.parametrize("why", ["killed, perhaps for lack of memory", "No room", "OSError: unreadable"])
def test_if_no_process_can_start_this_one_does_the_work(tmp_path, monkeypatch, why) -> None:
    monkeypatch.setattr(processes, "MOST_FAILED", 2)
    call = KillsWhoReadsIt(tmp_path, 100)
    if why == "No room":

        def refuse(*_, **__):
            raise BlockingIOError(why)

        monkeypatch.setattr(processes.subprocess, "Popen", refuse)
    elif "unreadable" in why:
        call = Unreadable()
    with Processes(2) as executor:
        with pytest.warns(WorkerWarning, match=rf"^2 processes could not start \(.*{why}\): this one does all"):
            found = dict(executor.each(call, deque([1, 2])))
        assert not executor.gives_up_at_once
        assert executor.slots == executor.ready == 1
    assert found == {1: (2, os.getpid()), 2: (4, os.getpid())}


class Unreadable(KillsWhoReadsIt):
    """A function that other processes can't read."""

    def __init__(self) -> None:
        pass

    def __reduce__(self):
        return complain, ()


def complain() -> None:
    raise OSError("unreadable")


def test_when_others_can_not_start_those_that_have_go_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(processes, "MOST_FAILED", 2)
    with Processes(2) as executor, Crew(executor, Counting()) as crew:
        while executor.ready < 2:
            list(crew.wait(1))
        executor._given = pickle.dumps(KillsWhoReadsIt(tmp_path, 100))
        executor._workers[0].process.kill()
        crew.submit("a")
        with pytest.warns(WorkerWarning, match="1 others go on"):
            wait_until(lambda: list(crew.wait(1)) is None or executor.slots == 1)
        crew.submit("b")
        while crew.running:
            for _, result in crew.wait(1):
                assert result[0] != os.getpid()


SCRIPT = """
from collections import deque
from gcnsl.runs.processes import Processes
from sleeping import sleep

with Processes(2) as executor:  # without a guard
    list(executor.each(sleep, deque([1, 2])))
"""
SLEEPING = """
import time

def sleep(item):
    open(f"{item}.tmp", "w").close()
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("when", ["starting", "working"])
def test_processes_end_with_the_one_they_work_for(tmp_path, temporary, number, when) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "sleeping.py").write_text(SLEEPING)
    main = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: len(children(main.pid)) == 2 and (when == "starting" or len(list(tmp_path.glob("*.tmp"))) == 2))
    workers = children(main.pid)
    os.killpg(main.pid, number)
    told = main.communicate(timeout=30)[1].decode()
    wait_until(lambda: not any(map(is_running, workers)))
    wait_until(lambda: not list(temporary.iterdir()))
    assert told.count("Traceback") == (number == signal.SIGINT), "that of the script itself"
