"""A list of the kept pairs beside tiles of the matrix, for the same input of the reconnect operator.

    python bench/regimes.py [--device cpu|cuda]

A back end chooses between the two by constants, which are changed here to force each. Inputs are those of
bench/reconnect.py; a step is a forward and a backward pass. The two take turns, one batch of steps each, and the median
counts. On a CPU, remembered pairs and the dense matrix are timed as well. Prints a table; the choice is bold.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch
from rich.console import Console
from rich.table import Table

from gcnsl.reconnection import PairMemory, problem, reconnect
from reconnect import P, Q, epsilon_for, inputs

BACKEND = {"cpu": "numba", "cuda": "triton"}
LIMIT = {"cpu": ("DENSE_FRACTION", 1.1, -1.0), "cuda": ("FUSED_PAIRS", 0, 1 << 62)}
"""The constant that a back end decides by, and its values for a list and for tiles."""
CELLS = {
    "cpu": [(183, "5"), (2708, "5"), (2708, "100"), (2708, "all"), (19717, "5"), (19717, "300")],
    "cuda": [(n, degree) for n in (183, 2708, 5201, 19717) for degree in ("5", "30")] + [(2708, "all"), (5201, "all")],
}
SECONDS = {"cpu": 4.0, "cuda": 1.0}
"""The time that a cell takes at least."""

Step = Callable[[], object]


@contextmanager
def forced(device: str, kind: str) -> Iterator[None]:
    """Make the back end of this device work with a list, or in tiles."""
    name, of_list, of_tiles = LIMIT[device]
    module = import_module(f"gcnsl.reconnection.{BACKEND[device]}_backend")
    with patch.object(module, name, of_list if kind == "list" else of_tiles):
        yield


def take_turns(steps: dict[str, Step], device: str) -> dict[str, float]:
    """Return the median milliseconds of each step."""
    for step in steps.values():
        step()
    calls = {name: max(1, int(20 / clock(step, 3))) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS[device] or len(times[next(iter(steps))]) < 3:
        for name, step in steps.items():
            times[name].append(clock(step, calls[name]))
    return {name: statistics.median(many) for name, many in times.items()}


def clock(step: Step, calls: int) -> float:
    """Return the milliseconds of a step."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    wait()
    return 1e3 * (time.perf_counter() - begin) / calls


def measure(n: int, degree: str, device: str) -> tuple[str, dict[str, float]]:
    """Return what the back end chooses, and the times of the alternatives."""
    z, h, grad = inputs(n, degree, device)
    epsilon = epsilon_for(n, degree)
    module: Any = import_module(f"gcnsl.reconnection.{BACKEND[device]}_backend")
    listed = module.forward(problem.Problem.of(z, None, h, epsilon)).pairs is not None

    def step(kind: str = "", backend: str = BACKEND[device], memory: PairMemory | None = None) -> None:
        z.grad = h.grad = None
        if not kind:
            reconnect(z, h, epsilon, backend=backend, memory=memory).backward(grad)
            return
        with forced(device, kind):
            reconnect(z, h, epsilon, backend=backend).backward(grad)

    steps: dict[str, Step] = {kind: lambda kind=kind: step(kind) for kind in ("list", "tiles")}
    if device == "cpu" and n < 10_000:
        memory = PairMemory()
        steps |= {"remembered": lambda: step(memory=memory), "dense": lambda: step(backend="dense")}
    return "list" if listed else "tiles", take_turns(steps, device)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    names = ("list", "tiles", "remembered", "dense")
    table = Table("n", "degree", *names, title=f"q = {Q}, p = {P}, torch {torch.__version__}; milliseconds per step")
    for n, degree in CELLS[device]:
        chosen, times = measure(n, degree, device)
        cells = [f"{times[name]:.3g}" if name in times else "–" for name in names]
        bold = [f"[bold]{cell}[/]" if name == chosen else cell for name, cell in zip(names, cells, strict=True)]
        table.add_row(f"{n:,}", degree, *bold)
    Console().print(table)


if __name__ == "__main__":
    main()
