"""A program that kills commands at random moments and continues them until they end; prints what became of them.

A process that has imported everything is forked for each attempt, so that hundreds of kills take minutes.
"""

import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random

import torch

from gcnsl import cli
from gcnsl.experiments.result_exports import read_results
from gcnsl.storage import load_folder

QUICK = ("--set", "epochs=60", "--set", "patience=60", "--set", "hidden_channels=8")
GRAPH = "synthetic-h0.5"


def run(folder: Path, arguments: tuple[object, ...], seconds: float = 600) -> bool:
    """Run a command in a process of its own, and kill it after so many seconds; whether it ended before."""
    child = os.fork()
    if child == 0:
        log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        sys.argv = ["gcnsl", *map(str, arguments), "--quiet"]
        try:
            cli.main()
        except SystemExit as stop:
            os._exit(int(stop.code or 0))
        finally:
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0, (folder / "log").read_text()
            return True
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


class Train:
    """Training with checkpoints: in the end, the same bits as without a kill."""

    command = ("train", GRAPH, "--method", "mlp", *QUICK, "--checkpoint-every", 3, "-o", "model")

    def finished(self, folder: Path) -> dict[str, object]:
        return {}

    def result(self, folder: Path) -> object:
        assert sorted(path.name for path in folder.iterdir()) == ["log", "model"], "nothing is left behind"
        return {name: tensor.numpy().tobytes() for name, tensor in load_folder(folder / "model")[1].items()}


class Reproduce:
    """Runs of an experiment: those in the store stay as they are."""

    command = ("reproduce", "accuracy", "--methods", "mlp", "--datasets", GRAPH, "--splits", "random", "--runs", 4)
    command += ("--jobs", 1, "--store", "results.db")

    def finished(self, folder: Path) -> dict[str, object]:
        path = folder / "results.db"
        return {found.spec.key: found for found in read_results(path)} if path.exists() else {}

    def result(self, folder: Path) -> object:
        return {key: (found.status, found.metrics) for key, found in self.finished(folder).items()}


class Search:
    """Trials of a search: those that are finished stay, and there are as many as asked for."""

    command = ("search", GRAPH, "--method", "mlp", "--trials", 5, "--runs", 1, "--study", "s.db", "-o", "s.toml")

    def finished(self, folder: Path) -> dict[str, object]:
        query = "SELECT trial_id, state, datetime_complete FROM trials WHERE state IN ('COMPLETE', 'PRUNED')"
        if not (folder / "s.db").exists():
            return {}
        with closing(sqlite3.connect(folder / "s.db")) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchall():
                return {}
            return {str(row[0]): row for row in connection.execute(query)}

    def result(self, folder: Path) -> object:
        return len(self.finished(folder)), (folder / "s.toml").exists()


def main(folder: Path, name: str, kills: int) -> None:
    """Kill a command so many times at least, over as many of its runs as that takes."""
    torch.set_num_threads(1)
    task, random = {"train": Train, "reproduce": Reproduce, "search": Search}[name](), Random(name)
    counts = {"kills": 0, "completed": 0, "lost": 0, "doubled": 0}
    (folder / "undisturbed").mkdir()
    began = time.monotonic()
    assert run(folder / "undisturbed", task.command)
    seconds, expected = time.monotonic() - began, task.result(folder / "undisturbed")
    while counts["kills"] < kills:
        place = folder / str(counts["completed"])
        place.mkdir()
        before = task.finished(place)
        for attempt in range(1000):  # the later, the less often
            if run(place, task.command, random.uniform(0, 1.5 * seconds) if attempt < 20 else 600):
                break
            counts["kills"] += 1
            now = task.finished(place)
            counts["lost"] += len(before.keys() - now.keys())
            counts["doubled"] += sum(before[key] != now[key] for key in before.keys() & now.keys())
            before = now
        counts["completed"] += 1
        counts["lost"] += task.result(place) != expected
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
