"""An epoch of GCN-SL beside the same with dense matrices everywhere, torch_geometric's two-layer GCN, and GCN-SL+.

    python bench/training.py [--data FOLDER] [--only cora,texas] [--device cpu|cuda]

On the paper's eight graphs, with the paper's hyper-parameters. An epoch is a training step and an evaluation pass, by
the package's own loop for all four. *Dense* computes the same model from X, Â and A* as dense matrices; *PyG* is
``torch_geometric.nn.GCN`` with 64 hidden channels and dropout .5; GCN-SL+ has its defaults, and directions where the
graph has some. On a CPU, every measurement runs in a process of its own: time is the median epoch, memory the peak
above what was there when the inputs were ready. Prints a table; a full run writes ``bench/results/training.json`` and
``training.png``, by device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, nn

from gcnsl.experiments import paper
from gcnsl.nn import GCNSL
from gcnsl.reconnection import dense
from gcnsl.sparse import Matrix

RESULTS = Path(__file__).parent / "results"
METHODS = {"ours": "GCN-SL", "dense": "GCN-SL, dense", "pyg": "GCN, PyG", "plus": "GCN-SL+"}
EPOCHS = {"ours": 40, "dense": 8, "pyg": 40, "plus": 40}
WARM = 4
WANTED_DENSE = dict.fromkeys(("cora", "citeseer", "pubmed", "squirrel"), 10)
WANTED_PYG = {"cora": 4}
WANTED_PLUS = {"squirrel": 3}
DIRECTED = ("chameleon", "squirrel", "texas", "wisconsin")
DENSE_BYTES_PER_PAIR = 40
"""What the dense model holds at its peak for each pair of nodes: Â, S, A*, a mask, and gradients."""


class DenseGCNSL(nn.Module):
    """The same weights and equations, every matrix dense, every derivative torch's own."""

    def __init__(self, model: GCNSL) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, adjacency: Tensor, spectral: Tensor) -> Tensor:
        """Logits of every node (n × C)."""
        model, functional = self.model, nn.functional
        assert model.lin_spectral is not None
        assert model.similarity is not None

        def drop(values: Tensor) -> Tensor:
            return functional.dropout(values, model.config.dropout, training=self.training)

        h = functional.relu(torch.cat([model.lin_x(drop(x)), model.lin_spectral(drop(spectral))], dim=1))
        z = functional.normalize(model.similarity(x), dim=1)
        before, after = h, adjacency @ h
        for _ in range(model.config.rounds - 1):
            before, after = after, adjacency @ after
        branches = torch.cat([h, before, after, dense.reconnect(z, z, h, model.config.epsilon)], dim=1)
        logits: Tensor = model.lin_out(drop(functional.relu(model.gate * branches)))
        return logits


def prepare(method: str, name: str, data: Any, device: str) -> tuple[nn.Module, list[Matrix]]:
    """The model and what it reads, on the device."""
    from gcnsl import methods

    if method == "pyg":
        from torch_geometric.nn import GCN

        model: nn.Module = GCN(data.num_features, 64, num_layers=2, out_channels=len(data.class_names), dropout=0.5)
        inputs: list[Matrix] = [data.x, data.edge_index]
    else:
        resolved = methods.resolve("gcn-sl-plus")
        if method != "plus":
            resolved = methods.resolve("gcn-sl-cc", options=paper.hyperparameters(name))
        prepared = methods.prepare(resolved, data, seed=0, device=torch.device("cpu"))
        inputs, model = list(prepared.inputs), prepared.build()
        if method == "dense":
            assert isinstance(model, GCNSL)
            model = DenseGCNSL(model)
            inputs = [value @ torch.eye(value.shape[1]) if not isinstance(value, Tensor) else value for value in inputs]
    return model.to(device), [value.to(device) for value in inputs]


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """In the child: train some epochs."""
    import gcnsl
    from gcnsl.training import TrainingSettings, train

    warnings.simplefilter("ignore")
    method, name, device = request["method"], request["dataset"], request["device"]
    directed = method == "plus" and name in DIRECTED
    data = gcnsl.load(name, split="geom-gcn", root=request["data"], directed=directed)
    torch.manual_seed(0)  # the first weights decide how many pairs A* keeps, and with them the time
    model, inputs = prepare(method, name, data, device)
    epochs = EPOCHS[method] + WARM
    settings = TrainingSettings(lr=0.01, epochs=epochs, patience=epochs)
    masks = {"train_mask": data.train_mask[:, 0], "val_mask": data.val_mask[:, 0]}
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    else:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far (Linux)
        before = resident("VmRSS")
    seconds: list[float] = []
    train(
        model,
        inputs,
        data.y,
        **masks,
        settings=settings,
        seed=0,
        on_epoch=lambda epoch: seconds.append(epoch.seconds),
        record=method in ("ours", "plus"),  # as for every method of the package
    )
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20 if device == "cuda" else resident("VmHWM") - before
    epoch = statistics.median(b - a for a, b in zip(seconds[WARM - 1 :], seconds[WARM:], strict=False))
    return {"ms": 1e3 * epoch, "MiB": peak}


def resident(line: str) -> float:
    """Resident memory in MiB: now (VmRSS) or at its peak (VmHWM)."""
    status = dict(entry.split(":", 1) for entry in Path("/proc/self/status").read_text().splitlines())
    return int(status[line].split()[0]) / 1024


def excuse(method: str, name: str, device: str) -> str:
    """Why a measurement is left out, or nothing."""
    needed = paper.DATASETS[name].nodes ** 2 * DENSE_BYTES_PER_PAIR
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = torch.cuda.mem_get_info()[0] if device == "cuda" else free
    return f"needs {needed / 2**30:.0f} GiB" if method == "dense" and needed > free else ""


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Run one measurement, on a CPU in a process of its own."""
    reason = excuse(request["method"], request["dataset"], request["device"])
    if reason:
        return {"skipped": reason}
    if request["device"] == "cuda":  # torch knows how much of a GPU's memory each measurement takes
        return measure(request)
    command = [sys.executable, __file__, "--child", json.dumps(request)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """Print the table."""
    table = Table(
        "",
        *METHODS.values(),
        "times faster than dense",
        "times PyG's epoch",
        "GCN-SL+, times GCN-SL's epoch",
        title="Milliseconds per epoch, MiB",
    )
    for row in rows:
        cells = ["–" if "skipped" in row[m] else f"{row[m]['ms']:.1f} ms\n{row[m]['MiB']:.0f} MiB" for m in METHODS]
        gain, cost, more = row.get("against dense"), row["against pyg"], row["plus against ours"]
        wanted, most, limit = (of.get(row["dataset"]) for of in (WANTED_DENSE, WANTED_PYG, WANTED_PLUS))
        table.add_row(
            row["dataset"],
            *cells,
            "–" if gain is None else _judged(gain, wanted, good=wanted is None or gain >= wanted, sign="≥"),
            _judged(cost, most, good=most is None or cost <= most, sign="≤"),
            _judged(more, limit, good=limit is None or more <= limit, sign="≤"),
        )
    console.print(table)


def to_markdown(rows: list[dict[str, Any]]) -> str:
    """The milliseconds and what they are compared with, as a table in Markdown with one column per graph."""
    titles = {"ours": "GCN-SL", "dense": "GCN-SL, dense", "pyg": "GCN, torch_geometric", "plus": "GCN-SL+"}
    names = [row["dataset"].replace("-geomgcn", "").capitalize() for row in rows]
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    ratios = {"dense": ("dense, times GCN-SL", "against dense"), "plus": ("GCN-SL+, times GCN-SL", "plus against ours")}
    for method, title in titles.items():
        lines.append(f"| {title} | {' | '.join(_short(row[method]['ms']) for row in rows)} |")
        if method in ratios:
            name, key = ratios[method]
            lines.append(f"| {name} | {' | '.join(f'{_short(row[key])}×' for row in rows)} |")
    return "\n".join(lines) + "\n"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def _judged(ratio: float, wanted: float | None, *, good: bool, sign: str) -> str:
    colour = "default" if wanted is None else "green" if good else "red"
    return f"[{colour}]{ratio:.1f}×[/]" + (f" ({sign} {wanted})" if wanted else "")


def draw(results: dict[str, Any], file: Path) -> None:
    """Milliseconds per epoch on every graph, one panel per device."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(7.5 * len(results), 4.2), squeeze=False, layout="constrained")
    for axis, (_, part) in zip(axes[0], sorted(results.items()), strict=True):
        rows = part["rows"]
        for k, (method, title) in enumerate(METHODS.items()):
            heights = [row.get(method, {}).get("ms", float("nan")) for row in rows]
            width = 0.8 / len(METHODS)
            axis.bar([i + width * (k - 1.5) for i in range(len(rows))], heights, width, label=title)
        axis.set(yscale="log", ylabel="milliseconds per epoch", title=part["machine"], xticks=range(len(rows)))
        axis.set_xticklabels([row["dataset"].replace("-geomgcn", "") for row in rows], rotation=20)
        axis.legend()
    figure.savefig(file, dpi=130)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="folder of the datasets (default: where gcnsl.load looks)")
    parser.add_argument("--only", default=",".join(paper.DATASETS), help="datasets, separated by commas")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(json.loads(arguments.child))))
        return
    rows = []
    for name in track(arguments.only.split(","), console=Console(stderr=True)):
        row: dict[str, Any] = {"dataset": name}
        for method in METHODS:
            row[method] = ask({"method": method, "dataset": name, "device": arguments.device, "data": arguments.data})
        if "skipped" not in row["dense"]:
            row["against dense"] = row["dense"]["ms"] / row["ours"]["ms"]
        row["against pyg"] = row["ours"]["ms"] / row["pyg"]["ms"]
        row["plus against ours"] = row["plus"]["ms"] / row["ours"]["ms"]
        rows.append(row)
    show(rows, Console(width=140) if not sys.stdout.isatty() else Console())
    if len(rows) < len(paper.DATASETS):
        return  # a part does not replace the whole
    file = RESULTS / "training.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    on_gpu = arguments.device == "cuda"
    machine = torch.cuda.get_device_name() if on_gpu else f"{platform.machine()}, {os.cpu_count()} cores"
    results[arguments.device] = {"machine": machine, "torch": torch.__version__, "rows": rows}
    file.write_text(json.dumps(results, indent=1) + "\n")
    draw(results, file.with_suffix(".png"))


if __name__ == "__main__":
    main()
