"""What is lost by comparing the rows of A* in groups: test accuracy beside that of the exact operator.

    python bench/groups.py [pubmed 0.2 0.5 0.8] [--nodes 50000] [--methods gcn-sl-cc] [--splits 1] [--epochs 40]

On Pubmed and on synthetic graphs of a given homophily, on a CPU, with the same splits and seeds. The exact operator
compares all pairs in every pass. In groups, the averages of training and of evaluation are estimated, as in any graph
with more than 32,768 nodes. *Then exact* is the model that was trained in groups, with predictions from all pairs.
Prints a table and writes ``bench/results/groups.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "groups.json"
NEVER, ALWAYS = 1 << 62, 0
NAMES = {"gcn-sl-cc": "GCN-SL<sub>cc</sub>", "gcn-sl-av": "GCN-SL<sub>av</sub>", "gcn-sl-plus": "GCN-SL+"}


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


def to_markdown(results: dict[str, Any]) -> str:
    """Test accuracy in percent, and seconds of all cores per epoch, as a table in Markdown."""
    lines = [
        "| | | exact | in groups | then exact | an epoch, exact | in groups |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, of_methods in results.items():
        for method, runs in of_methods.items():
            mean = {key: statistics.mean(run[key] for run in runs) for key in runs[0]}
            shares = (f"{100 * mean[key]:.2f}" for key in ("exact", "groups", "groups, then exact"))
            seconds = (f"{mean[f'{kind} seconds']:.2f} s" for kind in ("exact", "groups"))
            lines.append(f"| {' | '.join([name, NAMES[method], *shares, *seconds])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["pubmed", "0.2", "0.5", "0.8"], help="pubmed, or a homophily")
    parser.add_argument("--nodes", type=int, default=50_000, help="size of the synthetic graphs")
    parser.add_argument("--methods", default="gcn-sl-cc,gcn-sl-plus", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    for name in arguments.graphs:
        data = graph(name, arguments.nodes)
        title = "Pubmed" if name == "pubmed" else f"{arguments.nodes:,} nodes, homophily {name}"
        for method in arguments.methods.split(","):
            runs = [measure(data, method, run, arguments.epochs) for run in range(arguments.splits)]
            results.setdefault(title, {})[method] = runs
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(to_markdown(results))


if __name__ == "__main__":
    main()
