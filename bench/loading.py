"""Compares loading a large graph from Parquet with pandas reading the same two files.

    python bench/loading.py [--nodes 500000] [--edges 5000000]

For integer and string ids and for few and many features, it measures ``pandas.read_parquet`` on both files and
``gcnsl.from_tables``, which reads them, resolves the ids, checks everything and makes the edges simple and undirected.
For the cost of encoding, eight mixed columns (text, dates, booleans, and numbers with gaps) are measured as well; there
pandas also calls ``pandas.get_dummies``.
Each measurement runs in its own process. Time is the best of several runs; memory is the peak without the imports.
Prints a table and writes ``bench/results/loading.json``.
"""

import argparse
import itertools
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results" / "loading.json"
REPEATS = 7
FEATURES = (8, 64, "mixed")
MIB = 2**20


def write_tables(folder: Path, nodes: int, edges: int, features: int | str, *, text: bool) -> None:
    """Write the tables of a random graph with five classes."""
    generator = np.random.default_rng(0)
    numbers = generator.permutation(nodes) * 3 + 10**6
    ids = np.array([f"node-{i}" for i in numbers], dtype=object) if text else numbers
    if features == "mixed":
        columns = mixed_columns(generator, nodes)
    else:
        columns = {f"f{k}": generator.random(nodes, dtype=np.float32) for k in range(features)}
    labels = np.array(["red", "green", "blue", "white", "black"], dtype=object)[generator.integers(0, 5, nodes)]
    pd.DataFrame({"id": ids, **columns, "label": labels}).to_parquet(folder / "nodes.parquet")
    ends = generator.integers(0, nodes, (2, edges))
    pd.DataFrame({"source": ids[ends[0]], "target": ids[ends[1]]}).to_parquet(folder / "edges.parquet")


def mixed_columns(generator: np.random.Generator, nodes: int) -> dict[str, object]:
    """Three columns of text with 50 levels each, two numbers with gaps, a complete one, a date and a boolean."""
    levels = np.array([f"level {k}" for k in range(50)], dtype=object)
    numbers = generator.random((3, nodes), dtype=np.float32)
    numbers[:2][numbers[:2] < 0.1] = np.nan
    return {
        **{f"text{k}": levels[generator.integers(0, 50, nodes)] for k in range(3)},
        **{f"number{k}": values for k, values in enumerate(numbers)},
        "date": np.datetime64("2020-01-01") + generator.integers(0, 1000, nodes).astype("timedelta64[D]"),
        "boolean": generator.random(nodes) < 0.5,
    }


def measure(reader: str, folder: Path) -> dict[str, float]:
    """Run one reader in its own process."""
    done = subprocess.run([sys.executable, __file__, "--measure", reader, str(folder)], capture_output=True, check=True)
    return json.loads(done.stdout)


def resident(line: str) -> float:
    """Return the resident memory in MiB: the current one (VmRSS) or the peak (VmHWM)."""
    status = dict(entry.split(":", 1) for entry in Path("/proc/self/status").read_text().splitlines())
    return int(status[line].split()[0]) / 1024


def run_reader(reader: str, folder: Path) -> None:
    """In the child process, read once for the peak memory, then several times for the time."""
    paths = folder / "nodes.parquet", folder / "edges.parquet"
    if reader == "pandas":

        def read() -> float:
            frames = [pd.read_parquet(path) for path in paths]
            if "text0" in frames[0]:
                frames[0] = pd.get_dummies(frames[0], columns=["text0", "text1", "text2"], dummy_na=True)
            return float(sum(frame.memory_usage(deep=True).sum() for frame in frames))
    else:
        from gcnsl.graph import from_tables

        def read() -> float:
            return float(from_tables(*paths).edge_index.numel() * 8)

    Path("/proc/self/clear_refs").write_text("5")  # resets the peak (Linux)
    before = resident("VmRSS")
    size = read()
    peak = resident("VmHWM") - before
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        read()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(seconds), "peak_mib": peak, "size_mib": size / MIB}))


def to_markdown(rows: list[dict[str, Any]]) -> str:
    """Seconds of both readers, and the memory of ours beside the size of the tables, as a table in Markdown."""
    lines = ["| ids | features | pandas | ours | | memory |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for pandas, ours in zip(rows[::2], rows[1::2], strict=True):
        lines.append(
            f"| {'strings' if ours['ids'] == 'text' else 'integers'} | {ours['features']} | {pandas['seconds']:.2f} s "
            f"| {ours['seconds']:.2f} s | {ours['time_ratio']:.1f}× | {ours['memory_ratio']:.1f}× |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--measure", nargs=2, metavar=("READER", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        run_reader(arguments.measure[0], Path(arguments.measure[1]))
        return

    table = Table("ids", "features", "reader", "seconds", "ratio", "peak MiB", "to size", title="Loading from Parquet")
    rows = []
    for kind, features in itertools.product(("integer", "text"), FEATURES):
        with tempfile.TemporaryDirectory() as folder:
            write_tables(Path(folder), arguments.nodes, arguments.edges, features, text=kind == "text")
            pandas, ours = (measure(reader, Path(folder)) for reader in ("pandas", "gcnsl"))
        for reader, result in (("pandas", pandas), ("gcnsl", ours)):
            row = {
                "ids": kind,
                "features": features,
                "reader": reader,
                **result,
                "time_ratio": result["seconds"] / pandas["seconds"],
                "memory_ratio": result["peak_mib"] / pandas["size_mib"],
            }
            rows.append(row)
            table.add_row(
                kind,
                str(features),
                reader,
                f"{row['seconds']:.3f}",
                f"{row['time_ratio']:.2f}×",
                f"{row['peak_mib']:.0f}",
                f"{row['memory_ratio']:.2f}×",
            )
    Console().print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    setting = {"nodes": arguments.nodes, "edges": arguments.edges, "python": platform.python_version()}
    RESULTS.write_text(json.dumps({"setting": setting, "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
