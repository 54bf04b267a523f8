"""How the general defaults of GCN-SL were chosen: by validation nodes of graphs that are in no table of the paper.

    python bench/defaults.py [--rounds 4] [--splits 2] [--jobs -1] [--set epsilon=0.8 ...] [--only lr,dropout]

The graphs are the bundled ``debian`` and ``synthetic`` ones of homophily 0, .2, .4, .6, .8 and 1. Starting from the
package's defaults (or from those with ``--set``), every round tries each other value of each hyper-parameter alone, and
adopts the change that raises the mean validation accuracy over all graphs and splits most, as long as one raises it by
more than GAIN. Test nodes are never looked at. A round of all values takes about 70 minutes of one core. Prints a table
per round and adds to ``bench/results/defaults.json``.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import torch
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results" / "defaults.json"
HOMOPHILY = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
GAIN = 0.001
VALUES: dict[str, list[Any]] = {
    "epsilon": [0.5, 0.7, 0.8, 0.9, 0.95, 0.99],
    "rounds": [1, 2, 3, 4],
    "hidden_channels": [16, 32, 64],
    "similarity_channels": [8, 16, 32],
    "dropout": [0.3, 0.5, 0.6, 0.7],
    "n_components": [0, 10, 25, 50],
    "spectral_scale": ["unit", "sqrt-n"],
    "feature_norm": ["none", "row", "l2"],
    "self_loops": [True, False],
    "adjacency_norm": ["symmetric", "row"],
    "lr": [0.005, 0.01, 0.02, 0.05],
    "weight_decay": [5e-5, 5e-4, 5e-3],
}


def graph(name: str) -> Any:
    """One of the graphs, with splits."""
    import gcnsl
    from gcnsl.datasets import with_random_split

    if name == "debian":
        return gcnsl.load("debian")
    return with_random_split(gcnsl.synthetic(n=1000, h=float(name), classes=5, seed=0), seed=0)


def validate(name: str, options: dict[str, Any], splits: int) -> list[float]:
    """Validation accuracy of each split, in the best epoch."""
    from gcnsl.graph import split_masks
    from gcnsl.methods import METHODS, fit, prepare

    torch.set_num_threads(1)
    data, method = graph(name), METHODS["gcn-sl-cc"].with_options(**options)
    prepared = prepare(method, data, seed=0, device=torch.device("cpu"))
    found = []
    for split in range(splits):
        masks = split_masks(data, split)
        fitted = fit(prepared, train_mask=masks["train"], val_mask=masks["val"], seed=split)
        found.append(fitted.accuracy(masks)["val"])
    return found


def candidates(base: dict[str, Any], only: list[str]) -> Iterator[tuple[str, Any]]:
    """Every change of one value."""
    for name in only:
        yield from ((name, value) for value in VALUES[name] if value != base[name])


def measure(trials: list[dict[str, Any]], splits: int, jobs: int) -> list[dict[str, float]]:
    """Mean validation accuracy on each graph, for each set of options."""
    names = ["debian", *map(str, HOMOPHILY)]
    work = (joblib.delayed(validate)(name, options, splits) for options in trials for name in names)
    found = joblib.Parallel(n_jobs=jobs)(work)
    rows = [found[k : k + len(names)] for k in range(0, len(found), len(names))]
    return [{name: sum(part) / len(part) for name, part in zip(names, row, strict=True)} for row in rows]


def mean(accuracy: dict[str, float]) -> float:
    """Over the graphs."""
    return sum(accuracy.values()) / len(accuracy)


def show(title: str, rows: list[tuple[str, dict[str, float]]], console: Console) -> None:
    """Print a round: every change, best first."""
    table = Table("change", "mean", *rows[0][1], title=title)
    for name, accuracy in rows:
        table.add_row(name, f"{100 * mean(accuracy):.2f}", *(f"{100 * value:.1f}" for value in accuracy.values()))
    console.print(table)


def main() -> None:
    """Ascend, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--set", nargs="*", default=[], metavar="OPTION=VALUE", help="start from these")
    parser.add_argument("--only", default=",".join(VALUES), help="vary these, separated by commas")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    from gcnsl.methods import METHODS
    from gcnsl.options import read_assignments

    console = Console(width=140)
    base = (
        METHODS["gcn-sl-cc"]
        .with_options(**read_assignments(dict(part.split("=", 1) for part in arguments.set)))
        .options()
    )
    rounds = json.loads(arguments.output.read_text())["rounds"] if arguments.output.exists() else []
    for number in range(1, arguments.rounds + 1):
        began = time.perf_counter()
        changes = list(candidates(base, arguments.only.split(",")))
        trials = [base, *(base | {name: value} for name, value in changes)]
        start, *found = measure(trials, arguments.splits, arguments.jobs)
        named = [(f"{name} = {value}", accuracy) for (name, value), accuracy in zip(changes, found, strict=True)]
        ranked = sorted([("as it is", start), *named], key=lambda row: -mean(row[1]))
        show(f"Round {number}: validation accuracy ({time.perf_counter() - began:.0f} s)", ranked, console)
        best = max(range(len(found)), key=lambda k: mean(found[k]))
        gain = mean(found[best]) - mean(start)
        rounds.append(
            {"splits": arguments.splits, "options": base, "accuracy": start, "changes": dict(named), "gain": gain}
        )
        arguments.output.write_text(json.dumps({"rounds": rounds}, indent=1) + "\n")
        if gain <= GAIN:
            console.print("No change helps any more.")
            break
        name, value = changes[best]
        base = base | {name: value}
        console.print(f"Take over {name} = {value}: {100 * gain:+.2f} points.")


if __name__ == "__main__":
    main()
