"""Spectral features on the paper's eight graphs and on growing ones, beside the paper, SciPy and scikit-learn.

    python bench/spectral.py [--data FOLDER] [--only cora,texas] [--skip-scaling]

SC, ESC and ESC-ANCH with the paper's c and m; SC as SciPy does it best (affinity and Lanczos) and as the paper does it
(affinity and full eigendecomposition); scikit-learn's ``SpectralEmbedding`` (rbf, nearest neighbours) and
``TruncatedSVD`` (randomised, its default, which is not exact; and by ARPACK, which is) and SciPy's ``svds`` of ESC's
matrix P = D^-1/2 X. Then ESC and ESC-ANCH from 10⁴ to 10⁶ rows. Every measurement runs in a process of its own
(``bench/jobs/spectral.py``): time is the best of several runs, with one thread and with all, so that each method has
the number that suits it; memory is the peak above the input. Prints tables; a full run writes
``bench/results/spectral.json`` and ``spectral.png``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from rich.console import Console
from rich.progress import track
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
JOB = Path(__file__).parent / "jobs" / "spectral.py"
TIME_LIMIT = 150
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)


class Paper(NamedTuple):
    """The paper's number of components and anchors, and its seconds for SC, ESC and ESC-ANCH."""

    c: int
    m: int
    sc: float | None
    esc: float
    esc_anch: float


PAPER = {
    "cora": Paper(75, 700, 58.1, 1.7, 1.2),
    "citeseer": Paper(30, 500, 63.2, 4.6, 0.98),
    "pubmed": Paper(25, 500, None, 2.0, 1.4),
    "squirrel": Paper(15, 400, 98.5, 2.5, 1.1),
    "chameleon": Paper(13, 200, 29.3, 2.2, 0.96),
    "cornell-geomgcn": Paper(15, 100, 1.7, 1.8, 0.96),
    "texas": Paper(35, 100, 1.7, 1.8, 0.83),
    "wisconsin": Paper(20, 100, 1.8, 1.9, 0.89),
}
METHODS = {
    "esc-anch": "ESC-ANCH",
    "esc": "ESC",
    "sc": "SC",
    "sc-scipy": "SC, SciPy Lanczos",
    "sc-full": "SC, full eigendecomposition",
    "embedding-rbf": "SpectralEmbedding rbf",
    "embedding-knn": "SpectralEmbedding neighbours",
    "svds": "svds of P",
    "truncated-svd": "TruncatedSVD of P",
    "truncated-svd-exact": "TruncatedSVD of P, ARPACK",
}
SKIPPED = {
    ("pubmed", "sc-scipy"): "the n × n matrix takes 3.1 GB in each of several copies",
    ("pubmed", "sc-full"): "a full eigendecomposition of 19,717² takes an hour",
    ("pubmed", "embedding-rbf"): "factorises the dense n × n Laplacian",
    ("pubmed", "embedding-knn"): "factorises a Laplacian that fills in, beyond the time limit",
}
# (faster, slower, {dataset: how many times at least}); those over sc-full are the paper's own.
WANTED = [
    ("esc-anch", "sc-scipy", {"cora": 5, "citeseer": 5, "squirrel": 20}),
    ("esc-anch", "sc-full", {"cora": 48, "citeseer": 64, "squirrel": 90}),
    ("esc", "truncated-svd-exact", dict.fromkeys(PAPER, 1)),
    ("esc", "truncated-svd", dict.fromkeys(PAPER, 1)),
]


def ask(**request: Any) -> dict[str, Any]:
    """Run one request in a process of its own; a reason instead of a result where there is none."""
    command = [sys.executable, str(JOB), json.dumps(request)]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=TIME_LIMIT, text=True)
    except subprocess.TimeoutExpired:
        return {"skipped": f"over {TIME_LIMIT} s"}
    return json.loads(done.stdout.splitlines()[-1])


def bag_of_words(n: int, *, d: int = 2000, length: int = 20, topics: int = 100) -> scipy.sparse.csr_array:
    """Rows of twenty words, half of them from the row's topic."""
    rng = np.random.default_rng(0)
    width = d // topics
    own = rng.integers(topics, size=n)[:, None] * width + (4 * width * rng.random((n, length), np.float32) ** 2).astype(
        int
    )
    common = (d * rng.random((n, length), np.float32) ** 2).astype(int)
    column = np.where(rng.random((n, length), np.float32) < 0.5, own % d, common).astype(np.int32).ravel()
    start = np.arange(0, n * length + 1, length, dtype=np.int32)
    x = scipy.sparse.csr_array((np.ones(n * length, np.float32), column, start), shape=(n, d))
    x.sum_duplicates()
    return x


def measure_datasets(names: list[str], data: str | None, folder: Path) -> list[dict[str, Any]]:
    """Every method on every dataset."""
    import gcnsl
    from gcnsl.spectral.maps import median_distance

    rows = []
    for name in names:
        x = gcnsl.load(name, split=None, root=data).x.numpy()
        setting = {
            "c": PAPER[name].c,
            "m": PAPER[name].m,
            "sigma": median_distance(x.astype(np.float64)),
            "warm": len(x) < 10_000,
        }
        file = folder / f"{name}.npz"
        scipy.sparse.save_npz(file, scipy.sparse.csr_array(x))
        row: dict[str, Any] = {"dataset": name, "n": x.shape[0], "d": x.shape[1], "c": setting["c"], "m": setting["m"]}
        for method in track(METHODS, description=f"{name:16}", console=Console(stderr=True)):
            reason = SKIPPED.get((name, method))
            row[method] = {"skipped": reason} if reason else ask(method=method, file=str(file), **setting)
        row["angle"] = ask(method="angles", file=str(file), **setting)
        rows.append(row)
    return rows


def measure_scaling(folder: Path) -> dict[str, Any]:
    """ESC and ESC-ANCH with c = 50 and m = 500 over growing n; the slope of log time over log n."""
    points = []
    for n in track(SIZES, description="growing n       ", console=Console(stderr=True)):
        file = folder / f"{n}.npz"
        scipy.sparse.save_npz(file, bag_of_words(n), compressed=False)
        for method in ("esc", "esc-anch"):
            result = ask(method=method, file=str(file), c=50, m=500, sigma=1.0, warm=n <= 100_000)
            output = n * 50 * 4 / 2**20
            points.append({"n": n, "method": method, **result, "above_output_mib": result["peak_mib"] - output})
        file.unlink()
    slopes = {
        method: float(np.polyfit(*np.log([(p["n"], p["seconds"]) for p in points if p["method"] == method]).T, 1)[0])
        for method in ("esc", "esc-anch")
    }
    return {"points": points, "slopes": slopes}


def seconds(entry: dict[str, Any]) -> str:
    """One cell: seconds and peak memory, or why there are none."""
    return "–" if "skipped" in entry else f"{entry['seconds']:.3g} s\n{entry['peak_mib']:.0f} MiB"


def show(results: dict[str, Any], console: Console) -> None:
    """Print the tables."""
    names = [row["dataset"] for row in results["datasets"]]
    table = Table("", *names, title="Seconds (the better of one thread and all) and peak memory above the input")
    for method, title in METHODS.items():
        table.add_row(title, *(seconds(row[method]) for row in results["datasets"]))
        if method in {"sc", "esc", "esc-anch"}:
            printed = (getattr(PAPER[name], method.replace("-", "_")) for name in names)
            table.add_row("  in the paper", *("OM" if s is None else f"{s} s" for s in printed), style="dim")
    for method, title in (("esc", "Angle of ESC to LAPACK's subspace"), ("truncated-svd", "Angle of TruncatedSVD")):
        table.add_row(title, *(f"{row['angle'][method]:.0e}" for row in results["datasets"]))
    console.print(table)
    for (name, method), reason in SKIPPED.items():
        if name in names:
            console.print(f"– {name}, {METHODS[method]}: {reason}", style="dim")
    ratios = Table("faster", "slower", *names, title="How many times faster (wanted)")
    for faster, slower, _ in WANTED:
        cells = [results["ratios"].get(f"{name}: {slower} / {faster}") for name in names]
        ratios.add_row(METHODS[faster], METHODS[slower], *(ratio_cell(cell) for cell in cells))
    console.print(ratios)
    if "scaling" in results:
        table = Table(
            "rows", "method", "seconds", "peak MiB above input and output", title="c = 50, m = 500, 20 words a row"
        )
        for p in results["scaling"]["points"]:
            table.add_row(f"{p['n']:,}", METHODS[p["method"]], f"{p['seconds']:.3f}", f"{p['above_output_mib']:.0f}")
        console.print(table)
        for method, slope in results["scaling"]["slopes"].items():
            console.print(f"{METHODS[method]}: time grows as n^{slope:.2f}")


def to_markdown(rows: list[dict[str, Any]]) -> str:
    """Seconds of the paper's methods, beside the paper's and scikit-learn's, as a table in Markdown."""
    names = [row["dataset"] for row in rows]
    titles = [name.replace("-geomgcn", "").capitalize() for name in names]
    lines = [f"| | {' | '.join(titles)} |", f"| --- |{' ---: |' * len(names)}"]
    for method in ("esc-anch", "esc", "sc", "sc-scipy", "sc-full", "truncated-svd-exact", "truncated-svd"):
        cells = ["–" if "skipped" in row[method] else f"{row[method]['seconds']:.2g}" for row in rows]
        lines.append(f"| {METHODS[method]} | {' | '.join(cells)} |")
        if method in {"esc-anch", "esc", "sc"}:
            printed = (getattr(PAPER[name], method.replace("-", "_")) for name in names)
            lines.append(f"| *in the paper* | {' | '.join('–' if s is None else f'*{s:g}*' for s in printed)} |")
    return "\n".join(lines) + "\n"


def ratio_cell(entry: dict[str, float] | None) -> str:
    """A ratio, green where it is what was wanted."""
    if entry is None:
        return "–"
    wanted = entry["wanted"]
    if wanted is None:
        return times(entry["ratio"])
    colour = "green" if entry["ratio"] >= wanted else "red"
    return f"[{colour}]{times(entry['ratio'])}[/] ({wanted})"


def times(ratio: float) -> str:
    """A ratio with two or more digits."""
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.1f}×" if ratio >= 2 else f"{ratio:.2f}×"


def compare(rows: list[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """The ratios of times that were wanted, and the same for the other datasets."""
    found = {}
    for faster, slower, wanted in WANTED:
        for row in rows:
            if "skipped" not in row[faster] and "skipped" not in row[slower]:
                ratio = row[slower]["seconds"] / row[faster]["seconds"]
                found[f"{row['dataset']}: {slower} / {faster}"] = {"ratio": ratio, "wanted": wanted.get(row["dataset"])}
    return found


def draw(results: dict[str, Any], file: Path) -> None:
    """Seconds on the datasets, and over growing n."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), width_ratios=(3, 2), layout="constrained")
    drawn = ["sc-full", "sc-scipy", "sc", "truncated-svd", "esc", "esc-anch"]
    place = np.arange(len(results["datasets"]))
    for k, method in enumerate(drawn):
        heights = [row[method].get("seconds", np.nan) for row in results["datasets"]]
        left.bar(place + (k - 2.5) * 0.14, heights, 0.14, label=METHODS[method], color=f"C{k}")
    for k, method in ((2, "sc"), (4, "esc"), (5, "esc-anch")):
        printed = [getattr(PAPER[row["dataset"]], method.replace("-", "_")) for row in results["datasets"]]
        heights = [np.nan if s is None else s for s in printed]
        left.plot(place + (k - 2.5) * 0.14, heights, "_", color=f"C{k}", markersize=9, markeredgewidth=2)
    left.plot([], [], "_", color="grey", label="in the paper", markeredgewidth=2)
    left.set(yscale="log", ylabel="seconds", xticks=place, title="The paper's graphs, c and m")
    left.set_xticklabels([row["dataset"].replace("-geomgcn", "") for row in results["datasets"]], rotation=20)
    left.legend(fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    if "scaling" in results:
        for method, colour in (("esc", "C4"), ("esc-anch", "C5")):
            points = [p for p in results["scaling"]["points"] if p["method"] == method]
            slope = results["scaling"]["slopes"][method]
            sizes, times = [p["n"] for p in points], [p["seconds"] for p in points]
            right.loglog(sizes, times, "o-", color=colour, label=f"{METHODS[method]}: n^{slope:.2f}")
        right.set(xlabel="rows n", ylabel="seconds", title="Growing n (c = 50, m = 500, 20 words a row)")
        right.grid(visible=True, which="both", alpha=0.2)
        right.legend()
    figure.savefig(file, dpi=130)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=None, help="folder of the datasets (default: where gcnsl.load looks)")
    parser.add_argument("--only", default=",".join(PAPER), help="datasets, separated by commas")
    parser.add_argument("--skip-scaling", action="store_true", help="leave out the growing matrices")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure_datasets(arguments.only.split(","), arguments.data, Path(folder))
        setting = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        results: dict[str, Any] = {"setting": setting, "datasets": rows, "ratios": compare(rows)}
        if not arguments.skip_scaling:
            results["scaling"] = measure_scaling(Path(folder))
    show(results, Console(width=200) if not sys.stdout.isatty() else Console())
    if len(rows) < len(PAPER) or "scaling" not in results:
        return  # a part does not replace the whole
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "spectral.json").write_text(json.dumps(results, indent=2) + "\n")
    draw(results, RESULTS / "spectral.png")


if __name__ == "__main__":
    main()
