"""A program that does runs in processes of its own, to be killed and interrupted."""

import sys
from pathlib import Path

from gcnsl.experiments.records import RunResult, RunSpec, as_options
from gcnsl.experiments.run import execute
from gcnsl.methods import METHODS
from gcnsl.runs.processes import Processes

RUNS = 4


def specs(epochs: int = 30) -> list[RunSpec]:
    """Runs of GCN-SL on a synthetic graph."""
    quick = {"epochs": epochs, "patience": epochs, "n_anchors": 20, "n_components": 3, "hidden_channels": 4}
    every = as_options(METHODS["gcn-sl-cc"].with_options(**quick).options())
    return [RunSpec("gcn-sl-cc", "synthetic-h0.5", "random", number, 0, every) for number in range(RUNS)]


def main(store: Path, epochs: int) -> None:
    def tell(result: RunResult) -> None:
        print(result.spec.run, result.status, flush=True)

    try:
        with Processes(2) as executor:
            execute(specs(epochs), store, executor, device="cpu", on_result=tell)
    except KeyboardInterrupt:
        print("interrupted", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
