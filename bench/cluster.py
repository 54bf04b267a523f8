"""What a cluster costs and what it survives, with worker processes that are reached over TCP.

    python bench/cluster.py [--runs 40] [--kills 30] [--workers 2]

Trainings of GCN on the bundled graph are carried out by processes of this machine (as by ``--jobs 2``) and by as many
workers of a Dask scheduler. Speed is measured after every worker has finished one run.
Bytes are those that this process writes to its sockets, as the one who asks and as the scheduler.
Then workers are killed with SIGKILL, one after the other, while runs go on: each run must come back once, with the same
scores as without. Prints a table and writes ``bench/results/cluster.json``.
"""

import argparse
import json
import logging
import os
import pickle
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import LocalCluster
from distributed.comm import tcp
from rich.console import Console
from rich.table import Table

from gcnsl.datasets import load
from gcnsl.methods import METHODS
from gcnsl.runs.cluster import Cluster
from gcnsl.runs.executor import Executor
from gcnsl.runs.jobs import Finished, Job, Trainer
from gcnsl.runs.processes import Processes, thread_environment, threads_of_each

RESULTS = Path(__file__).parent / "results" / "cluster.json"
EPOCHS = (30, 300)
"""The lengths of short and of ordinary trainings."""


def measured(done: Finished) -> dict[str, float]:
    """What comes of a run."""
    return done.fitted.measure(done.masks["test"])


def trainer() -> Trainer[dict[str, float]]:
    """Trains on the bundled graph."""
    return Trainer(load("debian", runs=1), measured, seed=0, device="cpu")


def jobs(runs: int, epochs: int) -> deque[Job]:
    """Trainings of equal length."""
    quick = METHODS["gcn"].with_options(epochs=epochs, patience=epochs)
    return deque(Job(name="gcn", run=run, method=quick, split=0, seed=run) for run in range(runs))


def runs_per_second(executor: Executor, runs: int, epochs: int) -> float:
    """Speed after every worker has finished its first run."""
    times = [time.perf_counter() for _ in executor.each(trainer(), jobs(runs, epochs))]
    warm = executor.slots
    return (runs - warm) / (times[-1] - times[warm - 1])


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the bytes that are written to sockets in this process."""
    count, write = Counter[str](), tcp.TCP.write

    async def counting(self: Any, *message: Any, **options: Any) -> int:
        written = await write(self, *message, **options)
        count["bytes"] += written
        return written

    tcp.TCP.write = counting
    try:
        yield count
    finally:
        tcp.TCP.write = write


def bytes_of(cluster: Cluster, runs: int) -> int:
    """What is sent for so many short runs, the graph included."""
    with counted() as count:
        list(cluster.each(trainer(), jobs(runs, epochs=1)))
    return count["bytes"]


def survive(local: LocalCluster, cluster: Cluster, kills: int) -> dict[str, Any]:
    """Kill a worker after every other run, and compare all results with those of an undisturbed process."""
    done, killed, scores, expected = Counter[int](), 0, dict[int, Any](), trainer()
    began = time.perf_counter()
    for job, reached in cluster.each(trainer(), jobs(3 * kills, epochs=5)):
        done[job.run] += 1
        scores[job.run] = reached
        alive = [nanny.pid for nanny in local.workers.values() if nanny.pid]
        if killed < kills and len(done) % 2 == 0 and alive:
            os.kill(random.choice(alive), signal.SIGKILL)
            killed += 1
    return {
        "kills": killed,
        "runs": 3 * kills,
        "lost": 3 * kills - len(done),
        "doubled": sum(count > 1 for count in done.values()),
        "failed": sum(not isinstance(reached, dict) for reached in scores.values()),
        "different": sum(
            isinstance(scores[job.run], dict) and scores[job.run] != expected(job) for job in jobs(3 * kills, epochs=5)
        ),
        "seconds": round(time.perf_counter() - began, 1),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    with Processes(chosen.workers) as processes:
        here = {epochs: runs_per_second(processes, chosen.runs, epochs) for epochs in EPOCHS}
    of_dask: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),  # those that are killed are started again
        LocalCluster(
            n_workers=chosen.workers, env=thread_environment(threads_of_each(chosen.workers)), **of_dask
        ) as local,
        Cluster(local.scheduler_address) as cluster,
    ):
        there = {epochs: runs_per_second(cluster, chosen.runs, epochs) for epochs in EPOCHS}
        few, many = (bytes_of(cluster, runs) for runs in (10, 10 + chosen.runs))
        survived = survive(local, cluster, chosen.kills)
    found = {
        "workers": chosen.workers,
        "runs_per_second": {
            str(epochs): {"processes": round(here[epochs], 3), "cluster": round(there[epochs], 3)} for epochs in EPOCHS
        },
        "efficiency": {str(epochs): round(there[epochs] / here[epochs], 3) for epochs in EPOCHS},
        "bytes_of_a_graph": len(pickle.dumps(trainer())),
        "bytes_per_run": round((many - few) / chosen.runs),
    }
    table = Table("", "measured", title=f"{chosen.workers} workers over TCP")
    for epochs in EPOCHS:
        speeds = f"{here[epochs]:.2f} / {there[epochs]:.2f} ({there[epochs] / here[epochs]:.0%})"
        table.add_row(f"runs of {epochs} epochs per second, processes / cluster", speeds)
    table.add_row("bytes of the graph and the methods, once per worker", f"{found['bytes_of_a_graph']:,}")
    table.add_row("bytes per run", f"{found['bytes_per_run']:,}")
    table.add_row("workers killed, of runs", f"{survived['kills']}, {survived['runs']}")
    for what in ("lost", "doubled", "failed", "different"):
        table.add_row(f"runs {what}", str(survived[what]))
    Console().print(table)
    RESULTS.write_text(json.dumps(found | {"survived": survived}, indent=1) + "\n")


if __name__ == "__main__":
    from cluster import main as importable  # workers import what they are sent, and would look for it in their own main

    importable()
