"""One measurement of ``bench/spectral.py``, in a process of its own.

    python bench/jobs/spectral.py '{"method": "esc", "file": "x.npz", "c": 50, ...}'

Prints its answer as JSON: seconds and peak memory of a method, or the angles of two subspaces to the exact one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from threadpoolctl import threadpool_limits

QUICK = {"esc-anch", "esc", "svds", "truncated-svd", "truncated-svd-exact"}


def load(file: str) -> scipy.sparse.csr_array:
    """A feature matrix, as CSR."""
    return scipy.sparse.csr_array(scipy.sparse.load_npz(file))


def normalised(x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """P = D^-1/2 X in float64."""
    x = x.astype(np.float64)
    degree = x @ (x.T @ np.ones(x.shape[0]))
    root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return (scipy.sparse.diags_array(root) @ x).tocsr()


def gaussian(x: scipy.sparse.csr_array, sigma: float) -> np.ndarray:
    """G = D^-1/2 S D^-1/2 with Gaussian similarities, as one writes it with SciPy."""
    x = x.astype(np.float64)
    norms = x.power(2).sum(1)
    s = (x @ x.T).toarray()
    s *= -2
    s += norms
    s += norms[:, None]
    s /= -2 * sigma**2
    np.exp(s, out=s)
    root = s.sum(1) ** -0.5
    s *= root
    s *= root[:, None]
    return s


def job(method: str, x: scipy.sparse.csr_array, c: int, m: int, sigma: float) -> Callable[[], Any]:
    """What is timed: from the features as they are (or from P, for those that are given it) to F."""
    if method in {"sc", "esc", "esc-anch"}:
        from gcnsl import SpectralFeatures

        features = SpectralFeatures(method, n_components=c, n_anchors=m, sigma=sigma, random_state=42)
        return lambda: features.fit_transform(x)
    if method.startswith("embedding"):
        from sklearn.manifold import SpectralEmbedding

        affinity = "rbf" if method.endswith("rbf") else "nearest_neighbors"
        dense = x.toarray() if affinity == "rbf" else x
        return lambda: SpectralEmbedding(c, affinity=affinity, random_state=0).fit_transform(dense)
    if method.startswith("sc-"):
        from scipy.sparse.linalg import eigsh

        if method == "sc-scipy":
            return lambda: eigsh(gaussian(x, sigma), c, which="LA")
        return lambda: scipy.linalg.eigh(gaussian(x, sigma), driver="evd", overwrite_a=True, check_finite=False)
    p = normalised(x)
    if method == "svds":
        from scipy.sparse.linalg import svds

        return lambda: svds(p, c, random_state=0)
    from sklearn.decomposition import TruncatedSVD

    algorithm = "arpack" if method.endswith("exact") else "randomized"
    return lambda: TruncatedSVD(c, algorithm=algorithm, random_state=0).fit_transform(p)


def resident(line: str) -> float:
    """Resident memory in MiB: now (VmRSS) or at its peak (VmHWM)."""
    status = dict(entry.split(":", 1) for entry in Path("/proc/self/status").read_text().splitlines())
    return int(status[line].split()[0]) / 1024


def run_job(request: dict[str, Any]) -> dict[str, float]:
    """Once for the peak, then, if that was quick, several times with one thread and with all."""
    warnings.simplefilter("ignore")
    work = job(request["method"], load(request["file"]), request["c"], request["m"], request["sigma"])
    # On a busy machine small work in one thread is quick and steady, and in several may wait for a core.
    order = ("one", "all") if request["method"] in QUICK else ("all", "one")
    best: dict[str, float] = {}
    with threads(order[0]):
        if request["warm"]:
            work()
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far (Linux)
        before = resident("VmRSS")
        first = clock(work)
        peak = resident("VmHWM") - before
    for name in order:
        with threads(name):
            repeats = int(np.clip(1 / first, 1, 15)) if first < 3 else 0
            times = [clock(work) for _ in range(repeats)] + [first] * (name == order[0])
        if times:
            best[name] = min(times)
    return {"seconds": min(best.values()), "threads": best, "peak_mib": max(0.0, peak)}


@contextlib.contextmanager
def threads(number: str) -> Iterator[None]:
    """Let BLAS, OpenMP and torch use one thread, or all cores."""
    count = 1 if number == "one" else os.cpu_count() or 1
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)
    with threadpool_limits(count):
        yield


def clock(work: Callable[[], Any]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def angles(request: dict[str, Any]) -> dict[str, float]:
    """The largest principal angle to the subspace that LAPACK finds, of ESC and of TruncatedSVD."""
    from sklearn.decomposition import TruncatedSVD

    from gcnsl import SpectralFeatures

    x, c = load(request["file"]), request["c"]
    p = normalised(x)
    wide = p.shape[0] < p.shape[1]
    gram = (p @ p.T if wide else p.T @ p).toarray()
    size = len(gram)
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=[size - c, size - 1])
    exact = vectors if wide else p @ vectors / np.sqrt(values)
    esc = SpectralFeatures("esc", n_components=c).fit_transform(x)
    found = {"esc": esc, "truncated-svd": TruncatedSVD(c, random_state=0).fit_transform(p)}
    return {name: principal_angle(f, exact) for name, f in found.items()}


def principal_angle(f: np.ndarray, exact: np.ndarray) -> float:
    """The largest angle between two column spaces, in radians."""
    q = np.linalg.qr(f.astype(np.float64))[0]
    return float(np.arcsin(min(1.0, np.linalg.norm(q - exact @ (exact.T @ q), 2))))


def main() -> None:
    """Measure what is asked for."""
    request = json.loads(sys.argv[1])
    print(json.dumps(angles(request) if request["method"] == "angles" else run_job(request)))


if __name__ == "__main__":
    main()
