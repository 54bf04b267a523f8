"""What the commands answer: now, and in another version; prints where they differ.

    git worktree add ../before v0.2.0
    python bench/outputs.py --before ../before/src [--strangers FOLDER]

Each version trains methods on the bundled graph and, with ``--strangers``, on two graphs from their raw files, predicts
with the saved models, explains a node, and searches and compares with few epochs. Only one process works at a time, in
one thread. Predicted classes and probabilities, metrics and explanations are compared, times and paths are not. Prints
"same" or the largest difference for each command; the exit code is 1 if a command fails in this version alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
METHODS = (
    *("mlp", "gcn", "sage", "gat", "mixhop", "h2gcn-1", "h2gcn-2", "nlgnn", "gpr-gnn", "fsgnn", "acm-gcn", "dir-gcn"),
    *("linkx", "gcn-sl-cc", "gcn-sl-av", "gcn-sl-plus", "logistic", "boosted-trees", "label-propagation", "twins"),
)
FEW = ("--set", "epochs=8")
VOLATILE = re.compile(
    r"second|elapsed|time|minutes|path|model$|version|date|jobs|report$|plot$|folder|saved", re.IGNORECASE
)


def steps(graph: list[str], node: str, methods: tuple[str, ...], folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands by name; each writes what it can into the folder."""
    for method in methods:
        model = str(folder / method)
        few = [] if method in ("label-propagation", "twins") else FEW
        yield f"train {method}", ["train", *graph, "--method", method, *few, "-o", model, "--json"]
        yield f"predict {method}", ["predict", model, "-o", str(folder / f"{method}.csv")]
        yield f"explain {method}", ["explain", model, node, "--json"]
    yield "compare", ["compare", *graph, "--methods", "gcn,mlp,logistic", "--runs", "2", *FEW, "--json"]
    yield "search", ["search", *graph, "--method", "gcn", "--trials", "3", *FEW, "-o", str(folder / "s.toml"), "--json"]
    yield "inspect", ["inspect", *graph, "--json"]
    yield "report", ["report", str(folder / methods[0]), "-o", str(folder / "page.html")]


def answers(source: Path, graph: list[str], node: str, methods: tuple[str, ...]) -> dict[str, object]:
    """What each command prints as JSON and writes as a table, or the last line of its error."""
    found: dict[str, object] = {}
    environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, arguments in steps(graph, node, methods, folder):
            command = [sys.executable, "-m", "gcnsl", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=place)
            if done.returncode:
                found[name] = f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
            elif name.startswith("predict"):
                table = pd.read_csv(arguments[-1], keep_default_na=False)
                found[name] = {column: table[column].tolist() for column in table}
            else:
                found[name] = json.loads(done.stdout) if "--json" in arguments else done.returncode
    return found


def leaves(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """All plain values of nested ones by their places, but times and paths."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not VOLATILE.search(str(key)):
                yield from leaves(part, f"{place}.{key}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from leaves(part, f"{place}[{number}]")
    else:
        yield place, value


def difference(before: object, now: object) -> str:
    """In words, what differs; numbers by the largest difference."""
    old, new = dict(leaves(before)), dict(leaves(now))
    words = [f"only before: {place}" for place in old.keys() - new.keys()]
    words += [f"only now: {place}" for place in new.keys() - old.keys()]
    gaps: dict[str, float] = {}
    for place in old.keys() & new.keys():
        a, b = old[place], new[place]
        if isinstance(a, float | int) and isinstance(b, float | int):
            if not np.isclose(a, b, rtol=0, atol=0, equal_nan=True):
                gaps[place] = abs(a - b)
        elif a != b:
            words.append(f"{place}: {str(a)[:60]} | {str(b)[:60]}")
    if gaps:
        largest = max(gaps, key=gaps.__getitem__)
        words.append(f"{len(gaps)} numbers differ, most {largest} by {gaps[largest]:.2g}")
    return "; ".join(sorted(words)[:4]) + (f"; and {len(words) - 4} more" if len(words) > 4 else "") or "same"


def write_strangers(folder: Path, place: Path) -> Iterator[tuple[list[str], str]]:
    """The options that name two of the graphs, and a node of each."""
    with gzip.open(folder / "german" / "german_edges.txt.gz", "rt") as text:
        edges = pd.read_csv(text, sep=" ", names=["source", "target"]).astype(int)
    edges.to_csv(place / "german-edges.csv", index=False)
    pd.read_csv(folder / "german" / "german.csv").rename_axis("id").to_csv(place / "german.csv")
    tables = ["--nodes", str(place / "german.csv"), "--edges", str(place / "german-edges.csv")]
    yield [*tables, "--label", "GoodCustomer", "--unknown", ""], "3"
    nodes = pd.read_csv(folder / "air-routes" / "air-routes-latest-nodes.csv", keep_default_na=False)
    links = pd.read_csv(folder / "air-routes" / "air-routes-latest-edges.csv", keep_default_na=False)
    airports = nodes[nodes["~label"] == "airport"].rename(columns={"~id": "id"})
    airports = airports[["id", "runways:int", "longest:int", "elev:int", "region:string", "country:string"]]
    routes = links[links["~label"] == "route"].rename(columns={"~from": "source", "~to": "target"})
    airports.to_csv(place / "airports.csv", index=False)
    routes[["source", "target"]].to_csv(place / "routes.csv", index=False)
    tables = ["--nodes", str(place / "airports.csv"), "--edges", str(place / "routes.csv")]
    yield [*tables, "--label", "runways:int", "--drop", "region:string"], str(airports["id"].iloc[3])


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the src folder of the other version")
    parser.add_argument("--strangers", type=Path, help="folder with raw graphs")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    options = parser.parse_args()
    methods, broken = tuple(options.methods), False
    with tempfile.TemporaryDirectory() as place:
        graphs = [(["debian"], "i3-wm", methods)]
        if options.strangers:
            few = tuple(m for m in ("gcn", "logistic", "boosted-trees", "gcn-sl-plus", "linkx") if m in methods)
            graphs += [(tables, node, few) for tables, node in write_strangers(options.strangers, Path(place))]
        for graph, node, chosen in graphs:
            print("==", " ".join(graph))
            before, now = (answers(source, graph, node, chosen) for source in (options.before, ROOT / "src"))
            for name in now:
                print(f"{name:28}", difference(before[name], now[name]), flush=True)
                broken |= str(now[name]).startswith("exit") and not str(before[name]).startswith("exit")
    sys.exit(broken)


if __name__ == "__main__":
    main()
