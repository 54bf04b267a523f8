"""Specifications and results to try the file of results, the tables and the report with."""

from gcnsl.experiments.records import RunResult, RunSpec, as_options
from gcnsl.methods import METHODS


def spec(run: int = 0, **changes) -> RunSpec:
    values = {
        "method": "gcn-sl-cc",
        "dataset": "texas",
        "split": "random",
        "run": run,
        "seed": 42,
        "options": as_options(METHODS["gcn-sl-cc"].with_options(lr=0.01, rounds=1).options()),
    }
    return RunSpec(**(values | changes))


def result(run: int = 0, *, status: str = "ok", test: float = 0.8, **changes) -> RunResult:
    values = {"metrics": {"test": test}, "seconds": 1.5, "device": "cpu", "version": "0.1.0", "split_hash": "abc"}
    if status == "failed":
        values |= {"metrics": {}, "error": "TrainingDiverged: the loss is nan"}
    return RunResult(spec=changes.pop("of", spec(run)), status=status, **(values | changes))
