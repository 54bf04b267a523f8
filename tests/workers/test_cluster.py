import os
import signal
import time
from collections import deque

import pytest

from gcnsl.workers.cluster import Cluster
from gcnsl.workers.executor import WorkerLost, check_wanted

distributed = pytest.importorskip("distributed")


class Slow:
    """Writes into a folder when it is sent, when a run begins, and when it ends."""

    def __init__(self, folder, steps: int = 20) -> None:
        self.folder, self.steps = folder, steps

    def note(self, what: str, item: object = "") -> None:
        with open(self.folder / f"{what}{item}", "a") as file:
            file.write(f"{os.getpid()}\n")

    def noted(self, what: str) -> list[int]:
        return [int(line) for path in self.folder.glob(f"{what}*") for line in path.read_text().splitlines()]

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
        self.note("sent")

    def __call__(self, item: object) -> int:
        self.note("begin", item)
        for _ in range(self.steps):
            time.sleep(0.01)
            check_wanted()
        if item == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        self.note("end", item)
        return os.getpid()


@pytest.fixture(scope="module")
def machines():
    """Two worker processes, which talk to us over TCP."""
    with Cluster("local:2") as opened:
        yield opened


@pytest.fixture
def threads():
    """A function that makes a scheduler and workers in threads of this process, which is quick, and gives its address."""
    opened = []

    def start(**options) -> str:
        settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
        opened.append(distributed.LocalCluster(**(settings | options)))
        return opened[-1].scheduler_address

    yield start
    for each in opened:
        each.close()


def test_killed_workers_cost_nothing_but_time(machines, tmp_path) -> None:
    call, kills = Slow(tmp_path), []
    items, found = deque(range(12)), []
    for item, process in machines.each(call, items):
        found.append(item)
        if len(found) in (2, 5, 8):
            busy = [begun for begun in call.noted("begin") if begun not in kills and begun != process]
            kills += busy[-1:]
            for victim in busy[-1:]:
                os.kill(victim, signal.SIGKILL)
    assert sorted(found) == list(range(12)), "nothing lost, nothing doubled"
    assert len(kills) >= 1
    assert len(call.noted("sent")) <= 2 * (2 + len(kills)), "sent to workers, not with runs"


def test_a_run_that_kills_every_worker_is_given_up(machines, tmp_path) -> None:
    found = dict(machines.each(Slow(tmp_path, steps=1), deque(["poison", 1, 2])))
    poison = found.pop("poison")
    assert isinstance(poison, WorkerLost)
    assert str(poison) == "4 workers that were at it were killed, perhaps for lack of memory"
    assert found.keys() == {1, 2}


def test_whoever_leaves_does_not_keep_workers_busy(machines, tmp_path) -> None:
    call = Slow(tmp_path, steps=6000)
    results = machines.each(call, deque([1, 2, 3]))
    first = dict(machines.each(Slow(tmp_path, steps=1), deque(["before"])))
    assert first.keys() == {"before"}
    with pytest.raises(ArithmeticError):
        list(machines.each(_fail, deque([1])))
    results.close()
    after = machines.each(Slow(tmp_path, steps=1), deque(["after"]))
    assert next(after)[0] == "after"
    assert call.noted("end1") == []


def _fail(item: object) -> None:
    raise ArithmeticError(item)
