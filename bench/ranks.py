"""Time and memory of one model in several processes on one machine; ``bench/scale.py --ranks 1,2,4`` runs this.

    torchrun --nproc-per-node 4 bench/ranks.py METHOD FOLDER EPOCHS

Every process writes what it has used beyond what it had after its imports. The first process also loads and prepares
the graph, so that its peak in training is given, too: by then it has the graph and its own rows. ``0`` processes are
ordinary training, without torchrun.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

MIB = 1024
"""KiB in a MiB: the units of /proc and of the tables."""


def ask(size: int, method: str, folder: Path, epochs: int) -> dict[str, Any]:
    """Run so many processes; seconds of an epoch, and the largest and the first process's MiB."""
    for old in folder.glob("rank*.json"):
        old.unlink()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    command = [*(torchrun if size else [sys.executable]), __file__, method, str(folder), str(epochs)]
    one_thread = {"OMP_NUM_THREADS": "1"}  # as torchrun sets it, to compare like with like
    subprocess.run(command, check=True, env=os.environ | one_thread)
    first, *others = (json.loads(path.read_text()) for path in sorted(folder.glob("rank*.json")))
    return first | {"followers": max((other["peak"] for other in others), default=None)}


def in_rank(method: str, folder: Path, epochs: int) -> None:
    """In each process: load, prepare and train if it leads, or follow; write what was used."""
    import torch

    import gcnsl
    from gcnsl import methods
    from gcnsl.datasets import with_random_split
    from gcnsl.methods.together import follow, leading
    from gcnsl.reconnection import numba_backend  # noqa: F401 - it would count as memory of the first epoch
    from gcnsl.sharding import process_group

    torch.set_num_threads(1)
    at_start, used = kib("VmRSS"), {}
    if process_group.rank() > 0:
        follow("cpu")
        used["peak"] = (kib("VmHWM") - at_start) / MIB
    else:
        marks: list[float] = []

        def mark(_: object) -> None:
            if not marks:
                Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            marks.append(time.perf_counter())

        def fit() -> None:
            data = with_random_split(gcnsl.from_tables(folder / "nodes.parquet", folder / "edges.parquet"), seed=0)
            found = methods.resolve(method, options={"epochs": epochs + 1, "patience": epochs + 1})
            prepared = methods.prepare(found, data, seed=0, device=torch.device("cpu"))
            masks = {f"{part}_mask": data[f"{part}_mask"][:, 0] for part in ("train", "val")}
            methods.fit(prepared, **masks, seed=0, on_epoch=mark)

        if process_group.launched():
            with leading():
                fit()
        else:
            fit()
        used["training"] = (kib("VmHWM") - at_start) / MIB
        used["epoch"] = statistics.median(after - before for before, after in pairwise(marks))
    (folder / f"rank{process_group.rank():03}.json").write_text(json.dumps(used))


def kib(field: str) -> int:
    """A number from the process's status."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[field].split()[0])


def show(results: dict[str, Any], console: Console) -> None:
    """Print the table."""
    table = Table("nodes", "method", "processes", "epoch, s", "first one in training, MiB", "others, all in all, MiB")
    for n, row in results.items():
        for method, sizes in row.get("ranks", {}).items():
            for size, found in sizes.items():
                others = "" if found["followers"] is None else f"{found['followers']:.0f}"
                processes = "1, without torchrun" if size == "0" else size
                table.add_row(
                    f"{int(n):,}", method, processes, f"{found['epoch']:.2f}", f"{found['training']:.0f}", others
                )
    if table.rows:
        console.print(table)


if __name__ == "__main__":
    in_rank(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
