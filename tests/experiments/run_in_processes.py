"""A program that does runs in processes of its own, to be killed and interrupted."""

import os
import sys
from pathlib import Path

from gcnsl.experiments import run
from gcnsl.experiments.result_store import ResultStore, RunResult
from gcnsl.experiments.spec import RunSpec, as_options
from gcnsl.methods import METHODS

RUNS = 6


def specs(epochs: int = 60, **options) -> list[RunSpec]:
    """Runs of GCN-SL on a synthetic graph."""
    quick = {"epochs": epochs, "patience": epochs, "n_anchors": 20, "n_components": 3, "hidden_channels": 4}
    method = METHODS["gcn-sl-cc"].with_options(**(quick | options))
    every = as_options(method.options())
    return [RunSpec("gcn-sl-cc", "synthetic-h0.5", "random", number, 0, every) for number in range(RUNS)]


def fatal_group(group: list[RunSpec], work: run.Work) -> None:
    """In place of ``run_group``: run 1 takes its process with it."""
    with ResultStore(work.store) as store:
        for spec in group:
            if spec.run == 1:
                os._exit(1)
            store.add(RunResult(spec, "ok", {"test": 0.5}))


def main(store: Path, epochs: int) -> None:
    def tell(spec: RunSpec, status: str) -> None:
        print(spec.run, status, flush=True)

    run._POLL_SECONDS = 0.02
    try:
        run.execute(specs(epochs), store, device="cpu", jobs=2, on_result=tell)
    except KeyboardInterrupt:
        print("interrupted", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
