"""How time and memory grow with the graph: loading, preparing, an epoch, prediction, and `gcnsl train` from end to end.

    python bench/scale.py [20000 50000 200000 1000000] [--methods pyg,gcn-sl-cc,gcn-sl-plus] [--train gcn-sl-plus]
    python bench/scale.py 200000 1000000 --train gcn-sl-plus --device cuda

The graph has 10 communities, which are the classes, 10 edges per node (80 % of them inside of a community) and 64
features, in Parquet files. Every measurement runs in a process of its own, with default settings. *PyG* is
``torch_geometric.nn.GCN`` with two layers, 64 hidden channels and dropout .5, trained on the same graph by the same
loop. An epoch is a training step and an evaluation pass, which graphs of more than 32,768 nodes have in every fifth
epoch; the time of an epoch is the mean of these, from medians of both kinds. ``--train`` also runs ``gcnsl train`` and
``gcnsl predict`` with a method. Times are given by the clock and in seconds of all cores, which other work on the
machine disturbs less; on a GPU epochs are compared by the clock. Prints tables and updates
``bench/results/scale.json``, or ``scale-cuda.json`` for a GPU. ``--model`` measures nothing: it draws straight lines
through the sizes that were measured, and prints what they say of larger graphs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "results"
NAMES = {
    "pyg": "GCN, torch_geometric",
    "gcn-sl-cc": "GCN-SL<sub>cc</sub>",
    "gcn-sl-av": "GCN-SL<sub>av</sub>",
    "gcn-sl-plus": "GCN-SL+",
}
CLASSES, EDGES, FEATURES, INSIDE, NOISE = 10, 10, 64, 0.8, 4.0
WARM = 1


def write_graph(folder: Path, n: int) -> None:
    """Draw the graph and write its two tables."""
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=n)
    members = np.argsort(y, kind="stable")
    first = np.searchsorted(y[members], np.arange(CLASSES + 1))
    source = np.repeat(np.arange(n), EDGES)
    own = first[y[source]] + (rng.random(len(source)) * np.diff(first)[y[source]]).astype(np.int64)
    target = np.where(rng.random(len(source)) < INSIDE, members[own], rng.integers(n, size=len(source)))
    pq.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
    centres = rng.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    columns = {f"f{k}": centres[y, k] + NOISE * rng.standard_normal(n, dtype=np.float32) for k in range(FEATURES)}
    labels = np.array([f"class {c}" for c in range(CLASSES)])[y]
    pq.write_table(pa.table({"id": np.arange(n), **columns, "label": labels}), folder / "nodes.parquet")


@contextmanager
def clocked(times: dict[str, dict[str, float]], name: str) -> Iterator[None]:
    """Note the seconds by the clock and those of all cores."""
    began, worked = time.perf_counter(), time.process_time()
    yield
    times[name] = {"clock": time.perf_counter() - began, "cores": time.process_time() - worked}


def mean_epoch(marks: list[float], settings: Any) -> float:
    """Seconds of an epoch in the long run, from the times at which some epochs ended.

    The first of them only warm up. Of all epochs, one in ``settings.evaluate_every`` is evaluated.
    """
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number, (before, after) in enumerate(itertools.pairwise(marks[WARM - 1 :]), start=WARM + 1):
        taken[settings.evaluates(number)].append(after - before)
    interval = settings.evaluate_every
    evaluated = statistics.median(taken[True])
    return (evaluated + (interval - 1) * statistics.median(taken[False])) / interval if interval > 1 else evaluated


def measure(method: str, folder: Path, epochs: int, device: str) -> dict[str, Any]:
    """In the child: load, prepare, some epochs, and a prediction."""
    import torch
    from torch_geometric.nn import GCN

    import gcnsl
    from gcnsl import methods
    from gcnsl.datasets import with_random_split
    from gcnsl.training import TrainingSettings, predict_logits, train

    times: dict[str, dict[str, float]] = {}
    with clocked(times, "load"):
        data = with_random_split(gcnsl.from_tables(folder / "nodes.parquet", folder / "edges.parquet"), seed=0)
    torch.manual_seed(0)
    with clocked(times, "prepare"):
        if method == "pyg":
            model: torch.nn.Module = GCN(data.num_features, 64, num_layers=2, out_channels=CLASSES, dropout=0.5)
            model, inputs = model.to(device), (data.x.to(device), data.edge_index.to(device))
        else:
            prepared = methods.prepare(methods.resolve(method), data, seed=0, device=torch.device(device))
            model, inputs = prepared.build(), prepared.inputs
    marks: list[tuple[float, float]] = []
    settings = TrainingSettings(epochs=WARM + epochs, patience=WARM + epochs)
    train(
        model,
        inputs,
        data.y,
        train_mask=data.train_mask[:, 0],
        val_mask=data.val_mask[:, 0],
        settings=settings,
        seed=0,
        on_epoch=lambda _: marks.append((time.perf_counter(), time.process_time())),
    )
    clock, cores = (mean_epoch([mark[k] for mark in marks], settings.for_nodes(data.num_nodes)) for k in range(2))
    times["epoch"] = {"clock": clock, "cores": cores}
    with clocked(times, "predict"):
        predict_logits(model, inputs).cpu()
    on_gpu = {"peak_gpu_gib": torch.cuda.max_memory_allocated() / 2**30} if device == "cuda" else {}
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return times | {"peak_gib": int(status["VmHWM"].split()[0]) / 2**20} | on_gpu


def ask(method: str, folder: Path, epochs: int, device: str) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--child", method, str(folder), "--epochs", str(epochs), "--device", device]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def end_to_end(method: str, folder: Path, device: str) -> dict[str, Any]:
    """`gcnsl train` and `gcnsl predict` as a user would run them."""
    graph = ["--nodes", str(folder / "nodes.parquet"), "--edges", str(folder / "edges.parquet")]
    model = str(folder / "model")
    commands = {
        "train": ["train", *graph, "--method", method, "-o", model, "--device", device, "--json"],
        "predict": ["predict", model, "-o", str(folder / "predictions.parquet"), "--device", device],
    }
    results: dict[str, Any] = {}
    for name, command in commands.items():
        began = time.perf_counter()
        with open(folder / f"{name}.out", "w+", encoding="utf-8") as printed:
            child = subprocess.Popen([sys.executable, "-m", "gcnsl", *command], stdout=printed)
            _, code, used = os.wait4(child.pid, 0)
            if code:
                raise SystemExit(f"gcnsl {name} failed")
            clock = time.perf_counter() - began
            results[name] = {"clock": clock, "cores": used.ru_utime + used.ru_stime, "peak_gib": used.ru_maxrss / 2**20}
            printed.seek(0)
            if name == "train":
                report = json.load(printed)
                results[name] |= {"epochs": report["epochs"], "test_accuracy": report["accuracy"]["test"]}
    return results


def table_of_epochs(sizes: dict[str, Any], device: str) -> str:
    """What was measured of every method, as a table in Markdown; seconds are those of the clock.

    Epochs are compared with PyG's and with those of the smallest graph by the seconds of all cores, on a GPU by the
    clock.
    """
    unit = "cores" if device == "cpu" else "clock"
    lines = [
        "| nodes | | load | prepare | epoch | times PyG | growth | predict | GiB |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    smallest: dict[str, tuple[int, float]] = {}
    for n, row in sizes.items():
        for method, found in row["methods"].items():
            epoch, size = found["epoch"][unit], int(n)
            start, before = smallest.setdefault(method, (size, epoch))
            growth = f"n^{math.log(epoch / before) / math.log(size / start):.2f}" if size > start else ""
            ratio = f"{epoch / row['methods']['pyg']['epoch'][unit]:.1f}" if "pyg" in row["methods"] else ""
            load, prepare, clock, predict = (
                seconds(found[part]["clock"]) for part in ("load", "prepare", "epoch", "predict")
            )
            memory = f"{found.get('peak_gpu_gib', found['peak_gib']):.1f}"
            cells = [f"{size:,}", NAMES[method], load, prepare, clock, ratio, growth, predict, memory]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def table_of_commands(sizes: dict[str, Any]) -> str:
    """What the commands took, as a table in Markdown."""
    lines = ["| nodes | | minutes | GiB | epochs | test accuracy |", "| ---: | --- | ---: | ---: | ---: | ---: |"]
    for n, row in sizes.items():
        for method, commands in row["end_to_end"].items():
            for name, found in commands.items():
                accuracy = f"{found['test_accuracy']:.1%}".replace("%", " %") if name == "train" else ""
                command = f"`gcnsl {name}`, {NAMES[method]}"
                cells = [f"{int(n):,}", command, f"{found['clock'] / 60:.1f}", f"{found['peak_gib']:.1f}"]
                lines.append(f"| {' | '.join([*cells, str(found.get('epochs', '')), accuracy])} |")
    return "\n".join(lines) + "\n"


def table_of_model(sizes: dict[str, Any], method: str = "gcn-sl-plus") -> str:
    """Memory and epochs of larger graphs, if both grow in proportion to the nodes, as a table in Markdown.

    The lines go through the two largest graphs that were measured. The first row is a check: lines through the two
    graphs before the largest one say what it should have taken.
    """
    known = [(int(n), row["methods"][method]) for n, row in sizes.items() if method in row["methods"]]
    lines = ["| nodes | | GiB | an epoch, all cores |", "| ---: | --- | ---: | ---: |"]

    def row(n: int, what: str, first: tuple[int, Any], second: tuple[int, Any]) -> str:
        cells = []
        for number in (lambda found: found["peak_gib"], lambda found: found["epoch"]["cores"]):
            slope = (number(second[1]) - number(first[1])) / (second[0] - first[0])
            cells.append(number(second[1]) + slope * (n - second[0]))
        return f"| {n:,} | {what} | {cells[0]:,.1f} | {cells[1]:,.0f} s |"

    largest, found = known[-1]
    lines.append(f"| {largest:,} | measured | {found['peak_gib']:.1f} | {found['epoch']['cores']:,.0f} s |")
    lines.append(row(largest, "by the model of the smaller ones", *known[-3:-1]))
    lines += [row(10**power, "by the model", *known[-2:]) for power in (7, 8, 9)]
    return "\n".join(lines) + "\n"


def seconds(value: float) -> str:
    """A time in words, such as 3.2 s or 15 ms."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def write(known: dict[str, Any], device: str, path: Path) -> None:
    """Write all results so far: a measurement of a large graph takes long."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    if device == "cuda":
        import torch

        machine = f"{torch.cuda.get_device_name()}, {machine}"
    path.write_text(json.dumps({"machine": machine, "sizes": known}, indent=1) + "\n")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[20_000, 50_000, 200_000, 1_000_000])
    parser.add_argument("--methods", default=",".join(NAMES), help="measure these, separated by commas")
    parser.add_argument("--train", default="", help="run these from end to end, separated by commas")
    parser.add_argument("--epochs", type=int, default=5, help="number of epochs to measure, at least 2")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to train and to predict")
    parser.add_argument("--model", action="store_true", help="only print what was measured says of larger graphs")
    parser.add_argument("--child", nargs=2, metavar=("METHOD", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        method, folder = arguments.child
        print(json.dumps(measure(method, Path(folder), arguments.epochs, arguments.device)))
        return
    device = arguments.device
    path = RESULTS / ("scale.json" if device == "cpu" else "scale-cuda.json")
    known = json.loads(path.read_text())["sizes"] if path.exists() else {}
    if arguments.model:
        print(table_of_model(known))
        return
    for n in arguments.sizes:
        row = known.setdefault(str(n), {"methods": {}, "end_to_end": {}})
        known = dict(sorted(known.items(), key=lambda item: int(item[0])))
        with tempfile.TemporaryDirectory() as folder:
            write_graph(Path(folder), n)
            for method in filter(None, arguments.methods.split(",")):
                row["methods"][method] = ask(method, Path(folder), arguments.epochs, device)
                write(known, device, path)
            for method in filter(None, arguments.train.split(",")):
                row["end_to_end"][method] = end_to_end(method, Path(folder), device)
                write(known, device, path)
    print(table_of_epochs(known, device), table_of_commands(known), sep="\n")


if __name__ == "__main__":
    main()
