"""Calls from Python on a machine whose cores have other work, beside torch_geometric's GCN.

    python bench/busy.py [--data FOLDER] [--only texas,cora] [--repeats 5]

Other processes keep 0, 1 and 2 cores busy while this one computes spectral features, ``reconnect`` with its gradients,
and 30 epochs of ``NodeClassifier("gcn-sl")``, preparation included. *PyG* is 30 epochs of ``torch_geometric.nn.GCN``
in a plain loop, with the threads that torch takes. torch is imported first, and nothing tells its threads how to wait.
Times are medians; those with one core busy must be at most 3 times those of the idle machine. Prints a table in
Markdown; a full run writes ``bench/results/busy.json``. Run it on idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.pop("OMP_WAIT_POLICY", None)  # read when torch is loaded

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import gcnsl

RESULTS = Path(__file__).parent / "results" / "busy.json"
GRAPHS = ("texas", "cora")
BUSY = (0, 1, 2)
ALLOWED = 3
EPOCHS = 30
SHORTEST, LONGEST = 1, 10
"""Seconds for which a measurement is repeated at least and at most: a core is handed on every few milliseconds, and a
short call meets that now and then."""


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Keep so many cores busy by other processes."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    time.sleep(0.5 * bool(cores))  # until they have begun
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def calls_on(data: Data) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    n = data.num_nodes
    generator = torch.Generator().manual_seed(0)
    z = torch.nn.functional.normalize(torch.rand(n, 16, generator=generator), dim=1).requires_grad_()
    h = torch.rand(n, 64, generator=generator).requires_grad_()
    labels = data.y.numpy().copy()
    labels[~data.train_mask[:, 0].numpy()] = -1
    classifier = gcnsl.NodeClassifier("gcn-sl", epochs=EPOCHS, patience=EPOCHS, device="cpu")
    return {
        "ESC": lambda: gcnsl.SpectralFeatures("esc").fit_transform(data.x),
        "ESC-ANCH": lambda: gcnsl.SpectralFeatures(random_state=0).fit_transform(data.x),
        "reconnect": lambda: gcnsl.reconnect(z, h, 0.95).sum().backward(),
        f"GCN-SL, {EPOCHS} epochs": lambda: classifier.fit(data.x, labels, edge_index=data.edge_index),
        f"PyG's GCN, {EPOCHS} epochs": lambda: train_pyg(data),
    }


def train_pyg(data: Data) -> None:
    """Train torch_geometric's GCN as its tutorials do."""
    model = GCN(data.num_features, 64, 2, out_channels=len(data.class_names), dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        logits = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(logits[data.train_mask[:, 0]], data.y[data.train_mask[:, 0]]).backward()
        optimizer.step()


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """The median time of a call, of at least ``repeats`` unless it is long."""
    taken: list[float] = []
    while sum(taken) < (LONGEST if len(taken) < repeats else SHORTEST):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def measure(name: str, root: str | None, repeats: int) -> list[dict[str, Any]]:
    """The times of all calls on a graph, one row for each."""
    data = gcnsl.load(name, root=root)
    if data.x.layout != torch.strided:
        data.x = data.x.to_dense()
    calls = calls_on(data)
    rows = [{"graph": name, "call": call, "seconds": []} for call in calls]
    for call in calls.values():  # compiles what is compiled
        call()
    for cores in BUSY:
        with busy(cores):
            for row, call in zip(rows, calls.values(), strict=True):
                row["seconds"].append(seconds(call, repeats))
    return rows


def ratio_of(row: dict[str, Any]) -> float:
    """The time with one core busy, in units of that on the idle machine."""
    return float(row["seconds"][1] / row["seconds"][0])


def table_of(rows: list[dict[str, Any]]) -> str:
    """The times in milliseconds, in Markdown."""
    lines = [
        "| | " + " | ".join(["idle", *(f"{cores} busy" for cores in BUSY[1:]), "1 busy / idle"]) + " |",
        "| --- |" + " ---: |" * (len(BUSY) + 1),
    ]
    for row in rows:
        times = (f"{1000 * value:,.1f}" for value in row["seconds"])
        lines.append(
            f"| {row['graph'].title()}: {row['call']} | " + " | ".join([*times, f"{ratio_of(row):.1f}×"]) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the results of a full run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of the datasets")
    parser.add_argument("--only", default=",".join(GRAPHS), help="names of graphs")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    graphs = tuple(options.only.split(","))
    rows = [row for name in graphs for row in measure(name, options.data, options.repeats)]
    print(table_of(rows))
    if graphs == GRAPHS:
        machine = {"cores": os.cpu_count(), "processor": platform.processor(), "torch": torch.__version__}
        RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    sys.exit(any(ratio_of(row) > ALLOWED for row in rows if not row["call"].startswith("PyG")))


if __name__ == "__main__":
    main()
