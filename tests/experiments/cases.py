"""Runs and results to try the store, the tables and the report with."""

import sys
import time

from gcnsl.experiments.result_store import ResultStore, RunResult
from gcnsl.experiments.spec import RunSpec, as_options


def spec(run: int = 0, **changes) -> RunSpec:
    values = {
        "method": "gcn-sl-cc",
        "dataset": "texas",
        "split": "random",
        "run": run,
        "seed": 42,
        "options": as_options({"lr": 0.01, "plateau_factor": None, "rounds": 1}),
    }
    return RunSpec(**(values | changes))


def result(run: int = 0, *, status: str = "ok", test: float = 0.8, **changes) -> RunResult:
    values = {"metrics": {"test": test}, "seconds": 1.5, "device": "cpu", "version": "0.1.0", "split_hash": "abc"}
    if status == "failed":
        values |= {"metrics": {}, "error": "TrainingDiverged: the loss is nan"}
    return RunResult(spec=changes.pop("of", spec(run)), status=status, **(values | changes))


def write_forever(path: str, first: int) -> None:
    """Write one result after another until killed, and say which one is on the disk."""
    with ResultStore(path) as store:
        for run in range(first, first + 100_000):
            store.add(result(run))
            print(run, flush=True)
            time.sleep(0.01)  # one that never rests would keep the other waiting


if __name__ == "__main__":
    write_forever(sys.argv[1], int(sys.argv[2]))
