"""An epoch, the reconnect operator, loading and spectral features: now, and in another version, in the same run.

    git worktree add ../before v0.2.0
    python bench/versions.py --before ../before/src [--data FOLDER] [--device cpu|cuda] [--rounds 3] [--nodes 20000]

Both versions are asked the same through names that both have. Each measurement runs in a process of its own, the two
versions in turn, and the best of the rounds counts: other work on the machine only ever adds time. A graph of
``--nodes`` nodes is drawn as in ``bench/scale.py``; an epoch there is one of GCN-SL+ with its defaults. Prints a table
of both times and their ratio (below 1: this version is faster) and writes ``bench/results/versions.json`` by device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent / "results" / "versions.json"
ROOT = Path(__file__).parents[1]
EPOCHS, WARM = 44, 4
OPERATOR = {"cpu": (2708, 19_717), "cuda": (2708, 100_000, 1_000_000)}
Q, P, EPSILON = 16, 64, 0.9


def epoch(name: str, folder: str | None, device: str) -> float:
    """Median milliseconds of an epoch of GCN-SL with the paper's hyper-parameters."""
    import gcnsl
    from gcnsl.experiments import paper

    data = gcnsl.load(name, split="geom-gcn", root=folder)
    return _median_epoch("gcn-sl-cc", data, device, epochs=EPOCHS, **paper.hyperparameters(name))


def large(folder: str, device: str) -> tuple[float, float]:
    """Seconds to load a graph's tables, and median milliseconds of an epoch of GCN-SL+ on it."""
    import gcnsl
    from gcnsl.datasets import with_random_split

    began = time.perf_counter()
    data = gcnsl.from_tables(f"{folder}/nodes.parquet", f"{folder}/edges.parquet")
    seconds = time.perf_counter() - began
    return seconds, _median_epoch("gcn-sl-plus", with_random_split(data), device, epochs=10)


def _median_epoch(method: str, data: Any, device: str, *, epochs: int, **options: Any) -> float:
    from gcnsl import NodeClassifier

    seconds: list[float] = []
    options |= {"epochs": epochs, "patience": epochs}
    classifier = NodeClassifier(method, device=device, **options)
    classifier.on_epoch = lambda _: seconds.append(time.perf_counter())
    classifier.fit_graph(data)
    steps = [after - before for before, after in zip(seconds[WARM - 1 :], seconds[WARM:], strict=False)]
    return 1e3 * statistics.median(steps)


def operator(n: int, device: str) -> float:
    """Milliseconds of a forward and a backward pass of ``reconnect`` with random directions, three neighbours each."""
    import torch

    import gcnsl

    draw = torch.Generator(device).manual_seed(0)
    centres = torch.randn(n // 4, Q, generator=draw, device=device)
    z = centres.repeat_interleave(4, 0) + 0.05 * torch.randn(n // 4 * 4, Q, generator=draw, device=device)
    z = torch.nn.functional.normalize(z, dim=1).requires_grad_()
    h = torch.randn(len(z), P, generator=draw, device=device, requires_grad=True)

    def step() -> None:
        gcnsl.reconnect(z, h, EPSILON).sum().backward()
        if device == "cuda":
            torch.cuda.synchronize()

    step()
    times = []
    for _ in range(5 if n > 50_000 else 20):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def spectral(name: str, folder: str | None) -> float:
    """Milliseconds of ESC-ANCH's spectral features."""
    import gcnsl

    x = gcnsl.load(name, root=folder).x
    features = gcnsl.SpectralFeatures(n_components=50)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        features.fit_transform(x)
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


def answer(request: dict[str, Any]) -> dict[str, float]:
    """In the child: one measurement, by the names of its rows."""
    what, device = request["what"], request["device"]
    if what == "epoch":
        return {f"epoch, {request['graph']} (ms)": epoch(request["graph"], request["data"], device)}
    if what == "operator":
        return {f"reconnect, {request['n']:,} nodes (ms)": operator(request["n"], device)}
    if what == "spectral":
        return {f"spectral features, {request['graph']} (ms)": spectral(request["graph"], request["data"])}
    loading, training = large(request["folder"], device)
    return {f"loading, {request['n']:,} nodes (s)": loading, f"epoch, {request['n']:,} nodes (ms)": training}


def ask(source: Path, request: dict[str, Any]) -> dict[str, float]:
    """Run a measurement with the package of a source tree."""
    path = os.pathsep.join(filter(None, [str(source.resolve()), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "ignore", __file__, "--child", json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        raise SystemExit(f"{source}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(before: Path, requests: list[dict[str, Any]], rounds: int, show: Callable[[str], None]) -> dict[str, Any]:
    """The best time of each row in both versions, and the ratio."""
    rows: dict[str, Any] = {}
    for request in requests:
        best: dict[str, list[float]] = {}
        for _ in range(rounds):
            for place, source in enumerate((before, ROOT / "src")):
                for row, value in ask(source, request).items():
                    times = best.setdefault(row, [float("inf")] * 2)
                    times[place] = min(times[place], value)
        for row, (old, new) in best.items():
            rows[row] = {"before": round(old, 3), "now": round(new, 3), "ratio": round(new / old, 3)}
            show(f"{row:40} {old:12,.2f} {new:12,.2f} {new / old:8.2f}")
    return rows


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="the src folder of the other version")
    parser.add_argument("--data", help="folder with the datasets; without it the bundled graph only")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="*", default=[20_000], help="sizes of the graphs that are drawn")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(answer(json.loads(options.child))))
        return
    if options.before is None:
        parser.error("--before is needed: the src folder of the other version")
    sys.path.insert(0, str(ROOT))
    from bench.scale import write_graph

    common = {"data": options.data, "device": options.device}
    graphs = ["cora", "squirrel", "texas"] if options.data else []
    requests = [{"what": "epoch", "graph": graph, **common} for graph in graphs]
    requests += [{"what": "operator", "n": n, **common} for n in OPERATOR[options.device]]
    requests += [{"what": "spectral", "graph": graph, **common} for graph in graphs if options.device == "cpu"]
    with tempfile.TemporaryDirectory() as place:
        for n in options.nodes:
            folder = Path(place) / str(n)
            folder.mkdir()
            write_graph(folder, n)
            requests.append({"what": "large", "n": n, "folder": str(folder), **common})
        print(f"{'':40} {'before':>12} {'now':>12} {'ratio':>8}")
        rows = compare(options.before, requests, options.rounds, print)
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known[options.device] = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "rows": rows}
    RECORD.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
