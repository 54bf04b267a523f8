"""Time and memory of one model in several processes on one machine; ``bench/scale.py --ranks 1,2,4`` runs this.

    torchrun --nproc-per-node 4 bench/ranks.py METHOD FOLDER EPOCHS

Every process writes what it has used beyond what it had after its imports. The first process also loads and prepares
the graph, so that its peak in training is given, too: by then it has the graph and its own rows. ``0`` processes are
ordinary training, without torchrun.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

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
    from scale import mean_epoch

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

        def fit() -> Any:
            data = with_random_split(gcnsl.from_tables(folder / "nodes.parquet", folder / "edges.parquet"), seed=0)
            found = methods.resolve(method, options={"epochs": epochs + 1, "patience": epochs + 1})
            prepared = methods.prepare(found, data, seed=0, device=torch.device("cpu"))
            masks = {f"{part}_mask": data[f"{part}_mask"][:, 0] for part in ("train", "val")}
            methods.fit(prepared, **masks, seed=0, on_epoch=mark)
            return found.training.for_nodes(data.num_nodes)

        with leading() if process_group.launched() else nullcontext():
            settings = fit()
        used["training"] = (kib("VmHWM") - at_start) / MIB
        used["epoch"] = mean_epoch(marks, settings)
    (folder / f"rank{process_group.rank():03}.json").write_text(json.dumps(used))


def kib(field: str) -> int:
    """A number from the process's status."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[field].split()[0])


def to_markdown(sizes: dict[str, Any]) -> str:
    """Time and memory of the first process and of another one, as a table in Markdown; empty if nothing is known."""
    lines = [
        "| nodes | processes | epoch | first process | each other process |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for n, row in sizes.items():
        for by_size in row.get("ranks", {}).values():
            for size, found in sorted(by_size.items(), key=lambda each: int(each[0])):
                memory = [f"{found[name]:,.0f} MiB" if found[name] else "" for name in ("training", "followers")]
                cells = [f"{int(n):,}", "1, without torchrun" if size == "0" else size, f"{found['epoch']:.1f} s"]
                lines.append(f"| {' | '.join([*cells, *memory])} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


if __name__ == "__main__":
    in_rank(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
