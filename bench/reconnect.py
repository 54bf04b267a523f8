"""The reconnect operator beside dense torch and FlexAttention, and its search for pairs beside faiss and scikit-learn.

Inputs, the same for all: z are n unit vectors of q = 16 entries, drawn uniformly on the sphere; h has p = 64. ε is
solved from the distribution of their similarities, P(s ≥ ε) = ½ I₁₋ₑ²((q − 1)/2, ½), so that a row keeps the wanted
number of columns on average, itself included. For "all" the vectors have positive entries and ε = 0.01: every pair is
kept.

    python bench/reconnect.py [--device cpu|cuda] [--sizes 2708,19717] [--degrees 5,all] [--methods ours,dense]

On a CPU every measurement has a process of its own: its peak memory is the resident set's, above what it was before the
first call, and gradients count as memory while inputs do not; times are the best of several calls. On a GPU memory is
what torch's allocator gave out at most, and times are the median of several batches of calls, with one wait for the
device at the end of each, as in training. The rate counts the operations a method has to do, and is set against the
machine's own rate for a large float32 matrix product. Results go to bench/results/reconnect.json as they come, by
device, size, degree and method: a later run adds to them or renews them.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from scipy.special import betaincinv
from torch import Tensor
from torch.nn.functional import normalize

from gcnsl.reconnection import dense, reconnect, reconnected_edges

RESULTS = Path(__file__).parent / "results"
Q, P = 16, 64
SIZES = {"cpu": [2708, 19717, 100_000], "cuda": [2708, 19717, 100_000, 300_000, 1_000_000]}
DEGREES = ["1", "5", "30", "100", "1000", "all"]
DENSE_BYTES_PER_PAIR = {"cpu": 15, "cuda": 10}
"""What the dense version holds at its peak: the matrix, its mask, and gradients of both."""
FIELDS = (
    "work",
    "n",
    "degree",
    "method",
    "found",
    "forward",
    "backward",
    "both",
    "MiB",
    "GFLOP/s",
    "of matmul",
    "note",
)


def epsilon_for(n: int, degree: str) -> float:
    """Return the ε at which a row keeps ``degree`` columns of n on average."""
    if degree == "all":
        return 0.01
    others = max(float(degree) - 1, 0.01) / (n - 1)
    return math.sqrt(1 - betaincinv((Q - 1) / 2, 0.5, 2 * others))


def inputs(n: int, degree: str, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return z, h and a gradient of the output."""
    generator = torch.Generator(device).manual_seed(0)
    z, h, grad = (torch.randn(n, width, generator=generator, device=device) for width in (Q, P, P))
    return normalize(z.abs() if degree == "all" else z, dim=1).requires_grad_(), h.requires_grad_(), grad


def operator(method: str, epsilon: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the method as a function of z and h."""
    if method == "dense":
        return lambda z, h: dense.reconnect(z, z, h, epsilon)
    if method == "flex":
        return flex_attention(epsilon)
    return lambda z, h: reconnect(z, h, epsilon, backend="auto" if method == "ours" else method)


def flex_attention(epsilon: float) -> Callable[[Tensor, Tensor], Tensor]:
    """FlexAttention: softmax(log s) = s / Σ s, with pairs below ε scored −∞."""
    from torch.nn.attention import flex_attention as library

    torch._dynamo.reset()
    compiled = torch.compile(library.flex_attention, dynamic=False)

    def score(s: Tensor, *_: Tensor) -> Tensor:
        return torch.where(s >= epsilon, s.log(), -math.inf)

    def attend(z: Tensor, h: Tensor) -> Tensor:
        return compiled(z[None, None], z[None, None], h[None, None], score_mod=score, scale=1.0)[0, 0]

    return attend


def operations(method: str, n: int, pairs: float) -> float:
    """Return the floating-point operations of a forward and a backward pass."""
    if method in ("dense", "flex", "tiled"):
        return n * n * (2 * (Q + P) + 2 * (Q + 2 * P + 2 * Q))
    return n * n * Q + pairs * (2 * (Q + P) + 2 * (Q + 3 * P + Q))


def clock(work: Callable[[], Any], device: str, seconds: float) -> float:
    """Return the milliseconds of a call: the best on a CPU, the median of batches on a GPU."""

    def batch(calls: int) -> float:
        _synchronize(device)
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        _synchronize(device)
        return 1e3 * (time.perf_counter() - begin) / calls

    work()
    times = [batch(1)]
    calls = 1 if device == "cpu" else max(1, int(seconds * 1e3 / 5 / times[0]))
    while sum(times) * calls < seconds * 1e3 and len(times) < 60:
        times.append(batch(calls))
    return min(times) if device == "cpu" else sorted(times)[len(times) // 2]


def measure(device: str, n: int, degree: str, method: str) -> dict[str, Any]:
    """Time forward and backward passes of one method on one input, and find their peak memory."""
    epsilon = epsilon_for(n, degree)
    z, h, grad = inputs(n, degree, device)
    apply = operator(method, epsilon)
    if method != "flex":  # compile, and load the libraries, before memory is measured
        small = [tensor.detach()[:600].clone().requires_grad_() for tensor in (z, h)]
        apply(*small).backward(grad[:600])

    def step() -> None:
        z.grad, h.grad = None, None
        apply(z, h).backward(grad)

    peak = _peak_memory(step, device)
    z.grad, h.grad = None, None
    seconds = 0.3 if device == "cuda" else 1.0 if n > 50_000 or method == "dense" else 2.0
    both, forward = clock(step, device, seconds), clock(lambda: apply(z, h), device, seconds)
    rate = operations(method, n, n * (n if degree == "all" else float(degree))) / both / 1e6
    return {"forward": forward, "backward": both - forward, "both": both, "MiB": peak, "GFLOP/s": rate}


def measure_search(n: int, degree: str, method: str) -> dict[str, Any]:
    """Time the search for all kept pairs on the CPU; every method must find the same number."""
    epsilon, z = epsilon_for(n, degree), inputs(n, degree, "cpu")[0].detach()
    if method == "faiss":
        import faiss

        index = faiss.IndexFlatIP(Q)
        index.add(z.numpy())
        work = lambda: int(index.range_search(z.numpy(), epsilon)[0][-1])  # noqa: E731
    elif method == "sklearn":
        from sklearn.neighbors import NearestNeighbors

        neighbours = NearestNeighbors(radius=math.sqrt(2 - 2 * epsilon), n_jobs=-1).fit(z.numpy())
        work = lambda: neighbours.radius_neighbors_graph(z.numpy()).nnz  # noqa: E731
    else:
        work = lambda: reconnected_edges(z, epsilon)[0].shape[1]  # noqa: E731
    return {"found": work(), "both": clock(work, "cpu", 1.0)}


def matmul_rate(device: str) -> float:
    """Return the GFLOP/s of a large float32 matrix product."""
    side = 2048 if device == "cpu" else 8192
    a = torch.randn(side, side, device=device)
    return 2 * side**3 / clock(lambda: a @ a, device, 0.5) / 1e6


def plan(device: str, options: argparse.Namespace) -> list[tuple[str, int, str, str]]:
    """Return what to measure: the kind of work, n, degree, method."""
    cells = []
    for n in options.sizes or SIZES[device]:
        for degree in options.degrees:
            if degree != "all" and float(degree) * 2 > n:
                continue
            if (n > 100_000 and degree in ("1000", "all")) or (n > 50_000 and degree == "all" and device == "cpu"):
                continue  # minutes for one step, of the dense version and of ours alike
            rivals = {"5": ["dense", "flex"], "1000": ["dense"], "all": ["dense"]}.get(degree, [])
            cells += [
                ("step", n, degree, method) for method in ["ours", *rivals] if device == "cuda" or method != "flex"
            ]
        if device == "cpu":
            cells += [("search", n, "5", method) for method in ("ours", "faiss", "sklearn")]
    return [cell for cell in cells if not options.methods or cell[3] in options.methods]


def excuse(device: str, n: int, method: str) -> str:
    """Return why a measurement is left out, or nothing."""
    if method == "dense":
        on_host = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        free = torch.cuda.mem_get_info()[0] if device == "cuda" else on_host
        needed = n * n * DENSE_BYTES_PER_PAIR[device]
        if needed > free:
            return f"needs {needed / 2**30:,.0f} GiB, {free / 2**30:,.0f} are free"
    if method == "flex" and n > 100_000:
        return "ten seconds and more for one step"
    if method == "sklearn" and n > 50_000:
        return "about a minute for one search"
    return ""


def run(device: str, options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Measure everything, printing and keeping each line as it comes."""
    rate = matmul_rate(device)
    cores = f"{platform.machine()}, {torch.get_num_threads()} cores"
    machine = torch.cuda.get_device_name() if device == "cuda" else cores
    print(f"{machine}, torch {torch.__version__}, float32 matmul {rate:,.0f} GFLOP/s, q = {Q}, p = {P}; milliseconds\n")
    print(" ".join(f"{name:>10}" for name in FIELDS))
    kept = results.setdefault(device, {"rows": []})
    kept |= {"machine": machine, "torch": torch.__version__, "matmul GFLOP/s": rate}
    for kind, n, degree, method in plan(device, options):
        cell = {"work": kind, "n": n, "degree": degree, "method": method}
        row: dict[str, Any] = cell | {"note": excuse(device, n, method)}
        if not row["note"]:
            row |= _fresh(kind, device, n, degree, method) if device == "cpu" else _guarded(device, n, degree, method)
        if "GFLOP/s" in row:
            row["of matmul"] = row["GFLOP/s"] / rate
        kept["rows"] = [old for old in kept["rows"] if any(old[name] != cell[name] for name in cell)] + [row]
        options.output.write_text(json.dumps(results, indent=1) + "\n")
        print(" ".join(_cell(row.get(name, "")) for name in FIELDS), flush=True)


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw time and memory over n at degree 5, and time over the degree, a line of panels for each device."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(results), 3, figsize=(13, 4 * len(results)), squeeze=False, layout="constrained")
    for line, (device, result) in zip(axes, sorted(results.items()), strict=True):
        rows = [row for row in result["rows"] if "both" in row and row["work"] == "step"]
        for method in ("ours", "dense", "flex"):
            by_size = sorted(
                (row["n"], row["both"], row["MiB"]) for row in rows if (row["method"], row["degree"]) == (method, "5")
            )
            by_degree = [
                (row["n"] if row["degree"] == "all" else float(row["degree"]), row["both"])
                for row in rows if row["method"] == method and row["n"] == 19717
            ]  # fmt: skip
            if by_size:
                sizes, times, memory = zip(*by_size, strict=True)
                line[0].loglog(sizes, times, "o-", label=method)
                line[1].loglog(sizes, memory, "o-", label=method)
            if by_degree:
                line[2].loglog(*zip(*sorted(by_degree), strict=True), "o-", label=method)
        line[0].set(title=f"{device}: forward + backward, degree 5", xlabel="n", ylabel="milliseconds")
        line[1].set(title=f"{device}: peak memory above inputs, degree 5", xlabel="n", ylabel="MiB")
        line[2].set(title=f"{device}: forward + backward, n = 19,717", xlabel="mean degree", ylabel="milliseconds")
        for panel in line:
            panel.grid(visible=True, which="major", alpha=0.3)
            if panel.lines:
                panel.legend()
    figure.savefig(path, dpi=110)


def to_markdown(results: dict[str, Any]) -> str:
    """Time and memory of both versions, with five pairs a row and with all of them, as a table in Markdown."""
    lines = [
        "| | n | pairs a row | dense | ours | | dense, memory | ours, memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for device, title in {"cpu": "2 CPU cores", "cuda": "one H200"}.items():
        cells = {
            (row["n"], row["degree"], row["method"]): row for row in results[device]["rows"] if row["work"] == "step"
        }
        for n, degree in sorted((n, degree) for n, degree, method in cells if method == "dense" and degree != "1000"):
            dense, ours = cells[n, degree, "dense"], cells[n, degree, "ours"]
            ran = "both" in dense
            needed = dense["MiB"] if ran else n * n * DENSE_BYTES_PER_PAIR[device] / 2**20
            lines.append(
                f"| {title} | {n:,} | {degree} | {_milliseconds(dense['both']) if ran else 'cannot run'} "
                f"| {_milliseconds(ours['both'])} | {_times(dense['both'] / ours['both']) if ran else ''} "
                f"| {_memory(needed)} | {_memory(ours['MiB'])} |"
            )
    return "\n".join(lines) + "\n"


def _milliseconds(value: float) -> str:
    return f"{value / 1e3:.1f} s" if value >= 1e3 else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _memory(mebibytes: float) -> str:
    return f"{mebibytes:,.0f} MiB" if mebibytes < 10_000 else f"{mebibytes / 1024:,.0f} GiB"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}×" if ratio < 10 else f"{ratio:,.0f}×"


def _fresh(kind: str, *arguments: object) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"note": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _guarded(device: str, n: int, degree: str, method: str) -> dict[str, Any]:
    try:
        return measure(device, n, degree, method)
    except (torch.OutOfMemoryError, RuntimeError) as error:
        return {"note": str(error).splitlines()[0][:60]}
    finally:
        torch.cuda.empty_cache()


def _peak_memory(step: Callable[[], None], device: str) -> float:
    """Return the MiB that a step takes at most above what was there before it."""
    if device == "cuda":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew at the present size
    before = _status("VmRSS")
    step()
    return (_status("VmHWM") - before) / 2**10


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _cell(value: object) -> str:
    return (
        f"{value:>10.3g}"
        if isinstance(value, float) and value < 100
        else f"{value:>10,.0f}"
        if isinstance(value, float)
        else f"{value:>10}"
    )


def main() -> None:
    """Measure, print, and keep the results beside those of other devices."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--degrees", type=lambda text: text.split(","), default=DEGREES)
    parser.add_argument("--methods", type=lambda text: text.split(","))
    parser.add_argument("--output", type=Path, default=RESULTS / "reconnect.json")
    parser.add_argument("--plot-only", action="store_true")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, device, n, degree, method = options.one
        work = measure(device, int(n), degree, method) if kind == "step" else measure_search(int(n), degree, method)
        print(json.dumps(work))
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.output.read_text()) if options.output.exists() else {}
    if not options.plot_only:
        run(options.device, options, results)
    plot(results, options.output.with_suffix(".png"))
    print(f"\n{options.output} and {options.output.with_suffix('.png')}")


if __name__ == "__main__":
    main()
