"""What is lost by comparing the rows of A* in groups: test accuracy beside that of the exact operator.

    python bench/groups.py [pubmed 0.2 0.8] [--nodes 50000] [--methods gcn-sl-cc] [--splits 1] [--epochs 100]

On Pubmed and on synthetic graphs of a given homophily, on a CPU, with the same splits and seeds. The exact operator
compares all pairs in every pass. In groups, the averages of training and of evaluation are estimated, as in any graph
with more than 32,768 nodes. *Then exact* is the model that was trained in groups, with predictions from all pairs.
Prints a table and updates ``bench/results/groups.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results" / "groups.json"
WANTED = 0.005
NEVER, ALWAYS = 1 << 62, 0


def graph(name: str, nodes: int) -> Any:
    """One of the graphs, with splits."""
    import gcnsl
    from gcnsl.datasets import with_random_split

    if name == "pubmed":
        return gcnsl.load("pubmed", split="geom-gcn")
    return with_random_split(gcnsl.synthetic(n=nodes, h=float(name), classes=5, degree=10, seed=0), seed=0)


def measure(data: Any, method: str, run: int, epochs: int) -> dict[str, float]:
    """Test accuracy and the time of an epoch in seconds of all cores, exactly and in groups."""
    from gcnsl.estimator import NodeClassifier
    from gcnsl.reconnection import in_groups

    test, found = data.test_mask[:, run].numpy(), {"epochs": float(epochs)}
    for kind, exact_nodes in (("groups", ALWAYS), ("exact", NEVER)):
        in_groups.EXACT_NODES = exact_nodes
        began = time.process_time()
        classifier = NodeClassifier(method, epochs=epochs, random_state=run, device="cpu").fit_graph(data, run=run)
        found[f"{kind} seconds"] = (time.process_time() - began) / len(classifier.history_)
        found[kind] = classifier.score(None, _labels(data), nodes=test)
        if kind == "groups":
            in_groups.EXACT_NODES = NEVER
            found["groups, then exact"] = classifier.score(None, _labels(data), nodes=test)
    return found


def _labels(data: Any) -> list[str]:
    return [data.class_names[c] for c in data.y.tolist()]


def show(results: dict[str, Any], console: Console) -> None:
    """Print the table."""
    title = "Test accuracy, and seconds of all cores per epoch"
    table = Table(
        "graph",
        "method",
        "splits",
        "epochs",
        "exact",
        "in groups",
        "then exact",
        "exact, s",
        "in groups, s",
        title=title,
    )
    for name, of_methods in results.items():
        for method, runs in of_methods.items():
            mean = {key: statistics.mean(run[key] for run in runs) for key in runs[0]}
            colour = "green" if mean["groups"] >= mean["exact"] - WANTED else "red"
            shares = (f"{mean['exact']:.2%}", f"[{colour}]{mean['groups']:.2%}[/]", f"{mean['groups, then exact']:.2%}")
            seconds = (f"{mean[f'{kind} seconds']:.2f}" for kind in ("exact", "groups"))
            table.add_row(name, method, str(len(runs)), f"{mean['epochs']:.0f}", *shares, *seconds)
    console.print(table)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["pubmed", "0.2", "0.8"], help="pubmed, or a homophily")
    parser.add_argument("--nodes", type=int, default=50_000, help="size of the synthetic graphs")
    parser.add_argument("--methods", default="gcn-sl-cc,gcn-sl-plus", help="separated by commas")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=100)
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in arguments.graphs:
        data = graph(name, arguments.nodes)
        title = name if name == "pubmed" else f"synthetic, {arguments.nodes:,} nodes, homophily {name}"
        for method in arguments.methods.split(","):
            runs = [measure(data, method, run, arguments.epochs) for run in range(arguments.splits)]
            results.setdefault(title, {})[method] = runs
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(results, Console(width=140) if not sys.stdout.isatty() else Console())


if __name__ == "__main__":
    main()
