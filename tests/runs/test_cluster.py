import logging
import os
import signal
import sys
import time
from collections import deque

import pytest

from gcnsl import InputError
from gcnsl.errors import ArgumentError
from gcnsl.runs import cluster
from gcnsl.runs.cluster import Cluster
from gcnsl.runs.executor import WorkerLost, check_wanted
from gcnsl.runs.processes import thread_environment

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


class Slow:
    """Writes into a folder when it is sent, when a run begins, and when it ends; a long run takes minutes."""

    def __init__(self, folder) -> None:
        self.folder = folder

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
        for _ in range(60_000 if item == "long" else 20):
            time.sleep(0.01)
            check_wanted()
        if item == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        self.note("end", item)
        return os.getpid()


@pytest.fixture(scope="module")
def machines():
    """Two worker processes, which talk to us over TCP."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),  # those that are killed are started again
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            env=thread_environment(1),
        ) as local,
        Cluster(local.scheduler_address) as opened,
    ):
        yield opened


def test_killed_workers_cost_nothing_but_time(machines, tmp_path) -> None:
    call, killed, found = Slow(tmp_path), set(), []
    for item, process in machines.each(call, deque(range(12))):
        found.append(item)
        at_work = set(call.noted("begin")) - killed - {process}
        if len(found) in (2, 6) and at_work:
            victim = at_work.pop()
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)
    assert killed
    assert sorted(found) == list(range(12)), "nothing lost, nothing doubled"
    assert len(call.noted("sent")) < 12, "it is sent to workers, not with every run"


def test_a_run_that_kills_every_worker_is_given_up(machines, tmp_path) -> None:
    found = dict(machines.each(Slow(tmp_path), deque(["poison", 1, 2])))
    poison = found.pop("poison")
    assert isinstance(poison, WorkerLost)
    assert str(poison) == "4 workers that were at it were killed, perhaps for lack of memory"
    assert found.keys() == {1, 2}


def test_whoever_leaves_keeps_no_worker_busy(machines, tmp_path) -> None:
    call = Slow(tmp_path)
    results = machines.each(call, deque(["long", "short"]))
    assert next(results)[0] == "short"
    results.close()
    assert {item for item, _ in machines.each(call, deque(range(6)))} == set(range(6))
    assert len({process for number in range(6) for process in call.noted(f"end{number}")}) == 2, "both are free again"
    assert call.noted("endlong") == []


def test_a_cluster_without_workers_says_how_to_start_some(monkeypatch) -> None:
    monkeypatch.setattr(cluster, "_WORKER_SECONDS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(InputError, match="has no workers: start some with `dask worker ADDRESS --nthreads 1`"),
    ):
        Cluster(empty.scheduler_address)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "foo://bar:1"])
def test_an_address_where_nobody_answers(address, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.5)
    with pytest.raises(ArgumentError, match=r"can't be reached: it must be a Dask scheduler"):
        Cluster(address)


def test_without_dask_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ArgumentError, match=r"needs Dask: pip install 'gcnsl\[cluster\]'"):
        Cluster("tcp://127.0.0.1:9")
