"""What each regime of the reconnect operator gains over the next best one, side by side on the same input.

    python bench/regimes.py [--device cpu|cuda]

A regime (`gcnsl.reconnection.pairs.Regime`) is how a back end handles the kept pairs. It is forced here by changing the
constants that decide on it. Inputs are those of bench/reconnect.py; a step is a forward and a backward pass. On a CPU
the regimes take turns, one step each, and the best time counts. On a GPU they take turns in batches of steps, with one
wait for the device per batch, and the median counts. The gain is the time of the fastest alternative divided by that of
the regime which the back end chooses by itself. A list of more pairs than the back end makes room for is timed as well,
in brackets, but is no alternative: its memory would grow with the number of pairs.

Other choices are measured in the same way: calling the operator directly against looking it up in torch's table of
operators and, on a CPU, remembered pairs against a new search, and the dense matrix against numba for a tiny graph.
Prints tables and writes bench/results/regimes.json, by device.
"""

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from gcnsl.reconnection import PairMemory, pairs, reconnect
from gcnsl.reconnection.pairs import Regime
from reconnect import P, Q, epsilon_for, inputs

RESULTS = Path(__file__).parent / "results" / "regimes.json"
BACKEND = {"cpu": "numba", "cuda": "triton"}
REGIMES = {
    "cpu": [Regime.LISTED, Regime.STREAMED, Regime.TILED],
    "cuda": [Regime.LISTED, Regime.TILED],
}
CELLS = {
    "cpu": [(2708, "5"), (2708, "100"), (2708, "all"), (19717, "5"), (19717, "600"), (50000, "600")],
    "cuda": [(n, degree) for n in (183, 2708, 5201, 19717) for degree in ("5", "30")] + [(2708, "all"), (5201, "all")],
}
SECONDS = {"cpu": 4.0, "cuda": 1.0}
"""The time that a cell takes at least."""

Step = Callable[[], object]


def room_for(n: int, degree: str, device: str) -> int:
    """Return the pairs per row that a list needs, if that is more than the back end makes room for."""
    return max(pairs.PAIRS_PER_ROW[device], n if degree == "all" else 2 * int(degree))


@contextmanager
def forced(regime: Regime, room: int, device: str) -> Iterator[None]:
    """Make the back end of this device run in one regime."""
    from gcnsl.reconnection import numba_backend

    module: Any = numba_backend
    changes = {"DENSE_FRACTION": -1.0 if regime == Regime.TILED else 1.1}
    if device == "cuda":
        from gcnsl.reconnection import triton_backend

        module, changes = triton_backend, {"FUSED_PAIRS": 0 if regime == Regime.LISTED else 1 << 62}
    room = room if regime == Regime.LISTED else 0
    with patch.multiple(module, **changes), patch.dict(pairs.PAIRS_PER_ROW, {device: room}):
        yield


def regime_of(z: Tensor, h: Tensor, epsilon: float, device: str) -> Regime:
    """Return the regime in which the back end runs now."""
    with torch.no_grad():
        found = torch.ops.gcnsl.reconnect(z, None, h, epsilon, 1e-4, BACKEND[device], True)
    return Regime(int(found[-1]))


def take_turns(steps: dict[str, Step], device: str, seconds: float) -> dict[str, float]:
    """Return the milliseconds of each step: the best of many on a CPU, the median of batches on a GPU."""
    calls = dict.fromkeys(steps, 1)
    for name, step in steps.items():
        step()
        if device == "cuda":
            calls[name] = max(1, int(20 / _clock(step, 3)))
    times: dict[str, list[float]] = {name: [] for name in steps}
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times[next(iter(steps))]) < 3:
        for name, step in steps.items():
            times[name].append(_clock(step, calls[name]))
    return {name: min(many) if device == "cpu" else statistics.median(many) for name, many in times.items()}


def _clock(step: Step, calls: int) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin) / calls


def measure_regimes(n: int, degree: str, device: str) -> dict[str, Any]:
    """Time one input in every regime."""
    z, h, grad = inputs(n, degree, device)
    epsilon, room = epsilon_for(n, degree), room_for(n, degree, device)
    chosen = regime_of(z, h, epsilon, device)

    def step_in(regime: Regime) -> Step:
        def step() -> None:
            z.grad = h.grad = None
            with forced(regime, room, device):
                reconnect(z, h, epsilon, backend=BACKEND[device]).backward(grad)

        return step

    possible = []
    for regime in REGIMES[device]:
        with forced(regime, room, device):
            possible += [regime] if regime_of(z, h, epsilon, device) == regime else []
    times = take_turns({regime.name: step_in(regime) for regime in possible}, device, SECONDS[device])
    fits = room == pairs.PAIRS_PER_ROW[device]
    others = [ms for name, ms in times.items() if name != chosen.name and (fits or name in ("STREAMED", "TILED"))]
    gain = min(others) / times[chosen.name] if others else None
    return {"n": n, "degree": degree, "ms": times, "chosen": chosen.name, "list fits": fits, "gain": gain}


def measure_choices(n: int, device: str) -> dict[str, dict[str, float]]:
    """Time other choices at five kept pairs per row. The first of each two is the one that was made."""
    z, h, grad = inputs(n, "5", device)
    epsilon, backend, memory = epsilon_for(n, "5"), BACKEND[device], PairMemory()

    def step_of(apply: Callable[[], Tensor]) -> Step:
        def step() -> None:
            z.grad = h.grad = None
            apply().backward(grad)

        return step

    choices: dict[str, dict[str, Step]] = {
        "torch's table": {
            "around it": step_of(lambda: reconnect(z, h, epsilon, backend=backend)),
            "through it": step_of(lambda: torch.ops.gcnsl.reconnect(z, None, h, epsilon, 1e-4, backend, True)[0]),
        }
    }
    search = step_of(lambda: reconnect(z, h, epsilon, backend=backend))
    if device == "cpu":
        remember = step_of(lambda: reconnect(z, h, epsilon, backend=backend, memory=memory))
        choices["remembered pairs"] = {"remembered": remember, "searched": search}
    if device == "cpu" and n <= 256:
        choices["tiny graphs"] = {"dense": step_of(lambda: reconnect(z, h, epsilon, backend="dense")), "numba": search}
    return {choice: take_turns(steps, device, SECONDS[device]) for choice, steps in choices.items()}


def show(result: dict[str, Any], device: str, console: Console) -> None:
    """Print the tables."""
    title = f"{result['machine']}, torch {result['torch']}, q = {Q}, p = {P}; milliseconds per step"
    table = Table(title=title)
    for name in ("n", "degree", *(regime.name for regime in REGIMES[device]), "gain"):
        table.add_column(name, justify="right")
    for row in result["regimes"]:
        cells = []
        for name in (regime.name for regime in REGIMES[device]):
            ms = row["ms"].get(name, math.nan)
            text = "–" if math.isnan(ms) else f"{ms:.3g}" if ms < 100 else f"{ms:,.0f}"
            too_long = not row["list fits"] and name == "LISTED"
            cells.append(f"({text})" if too_long else f"[bold]{text}[/]" if name == row["chosen"] else text)
        table.add_row(f"{row['n']:,}", row["degree"], *cells, "–" if row["gain"] is None else f"{row['gain']:.2f}×")
    console.print(table)
    table = Table("n", "choice", "made", "ms", "instead of", "ms", "gain", title="Other choices, degree 5")
    for n, choices in result["choices"].items():
        for choice, times in choices.items():
            (made, ms), (other, other_ms) = times.items()
            table.add_row(n, choice, made, f"{ms:.3g}", other, f"{other_ms:.3g}", f"{other_ms / ms:.2f}×")
    console.print(table)


def main() -> None:
    """Measure, print, and keep the results beside those of other devices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    cores = f"{platform.machine()}, {torch.get_num_threads()} cores"
    result: dict[str, Any] = {
        "machine": torch.cuda.get_device_name() if device == "cuda" else cores,
        "torch": torch.__version__,
        "regimes": [measure_regimes(*cell, device) for cell in track(CELLS[device], console=Console(stderr=True))],
        "choices": {str(n): measure_choices(n, device) for n in (183, 300, 2708)},
    }
    show(result, device, Console())
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(results | {device: result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
