"""Carry out runs: train, search or time one, and let the workers of an executor do many.

Only this process writes the results, each as soon as it arrives, so only runs under way are lost when it ends early.
"""

import math
import os
import platform
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import torch
from joblib import cpu_count
from torch_geometric.data import Data

from gcnsl.auto.search import Search, search
from gcnsl.checks import check_number
from gcnsl.datasets import load
from gcnsl.errors import InputError
from gcnsl.evaluation.measured import learned_agreement
from gcnsl.execution import one_thread
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import runs_after, searched_method
from gcnsl.experiments.plan import CURVE_STEP
from gcnsl.experiments.records import RunResult, RunSpec
from gcnsl.files import check_writable, digest
from gcnsl.graph import edge_homophily, split_masks
from gcnsl.methods import Fitted, Prepared, find_method, fit, initial_model, resolve
from gcnsl.runs.executor import HERE, Executor, WorkerLost, check_wanted
from gcnsl.runs.jobs import Preparations
from gcnsl.runs.results import append_records
from gcnsl.spectral import SpectralFeatures
from gcnsl.training import Epoch, choose_device
from gcnsl.version import __version__

GPU_JOBS = 16
"""The default number of processes that share a GPU, if there are as many cores: a single one leaves it idle most of the
time. NVIDIA's multi-process service lets them use it at once (8 processes on an H200: 12 s with it, 17 s without)."""


def train_run(spec: RunSpec, prepared: Prepared, *, on_epoch: Callable[[Epoch], None] | None = None) -> RunResult:
    """Train on one split, look at its test nodes once, at the end, and measure the learned graph.

    For curves, the test accuracy of every epoch goes into the history, too; it decides nothing.
    """
    began = time.perf_counter()
    masks = split_masks(prepared.graph, spec.run)
    watch = {"test": masks["test"]} if spec.curves else None
    training: dict[str, Any] = {"train_mask": masks["train"], "val_mask": masks["val"], "watch": watch}
    fitted = fit(prepared, **training, seed=spec.train_seed, on_epoch=on_epoch)
    metrics: dict[str, Any] = {**fitted.accuracy(masks)}
    seconds = time.perf_counter() - began
    if spec.metric != "accuracy":
        metrics[spec.test_score] = fitted.measure(masks["test"])[spec.metric]
    metrics |= {f"{part}_nodes": int(masks[part].sum()) for part in ("train", "test")}
    metrics |= {"epochs": len(fitted.history), "best_epoch": fitted.history.best_epoch, **_homophily(spec, fitted)}
    curves = {part: fitted.history[f"{part}_accuracy"][::CURVE_STEP] for part in masks if spec.curves}
    return RunResult(
        spec,
        "ok",
        {name: None if value is None or math.isnan(value) else round(value, 6) for name, value in metrics.items()},
        seconds=round(seconds, 3),
        split_hash=digest(masks)[:16],
        history={part: [round(value, 4) for value in curve] for part, curve in curves.items()},
        **_provenance(prepared.device),
    )


def _homophily(spec: RunSpec, fitted: Fitted) -> dict[str, float | None]:
    """Homophily and degree of the given graph and of the learned one before and after training, if one is learned.

    A metric is ``None`` where there are no edges. Those that end in ``_featured`` are of the graphs among the nodes
    with features: GCN-SL's shift makes all rows without features equal, so that A* joins their nodes whatever it has
    learned.
    """
    prepared, model = fitted.prepared, fitted.model
    if not getattr(model, "learns_graph", False):
        return {}
    x, edges, y = prepared.graph.x, prepared.graph.edge_index, prepared.graph.y
    initial = initial_model(prepared, spec.train_seed).eval()
    featured = x.abs() @ torch.ones(x.shape[1], dtype=x.dtype) > 0
    metrics: dict[str, float | None] = {}
    for suffix, nodes in (("", torch.ones_like(featured)), ("_featured", featured)):
        learned, before = (learned_agreement(each, prepared.inputs, y, among=nodes) for each in (model, initial))
        metrics |= {
            f"homophily{suffix}": learned and learned.homophily,
            f"degree{suffix}": learned and learned.degree,
            f"homophily_initial{suffix}": before and before.homophily,
            f"homophily_original{suffix}": edge_homophily(edges[:, nodes[edges].all(dim=0)], y, loops=True),
        }
    return metrics


def time_features(spec: RunSpec, data: Data, *, device: torch.device) -> RunResult:
    """Time the computation of a graph's spectral features.

    It runs in one thread: the gain from several depends more on the machine than on the method.
    """
    options: dict[str, Any] = {"method": spec.method, "random_state": spec.train_seed}
    warm_up, x = torch.ones(64, 2, device=device), data.x.to(device)
    wait: Callable[[], Any] = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    with one_thread():
        SpectralFeatures(**options, n_components=2, n_anchors=2).fit_transform(warm_up)
        wait()
        began = time.perf_counter()
        SpectralFeatures(**options, **dict(spec.options)).fit_transform(x)
        wait()
        seconds = round(time.perf_counter() - began, 6)
    return RunResult(spec=spec, status="ok", metrics={"seconds": seconds}, seconds=seconds, **_provenance(device))


def _failed(spec: RunSpec, error: str, device: torch.device) -> RunResult:
    return RunResult(spec=spec, status="failed", error=" ".join(error.split())[:500], **_provenance(device))


def _provenance(device: torch.device) -> dict[str, Any]:
    """The machine, the version of this package and the time."""
    gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if gpu else f"CPU ({platform.machine()}, {os.cpu_count()} cores)"
    finished = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"device": name, "version": __version__, "finished": finished}


def missing_runs(
    specs: Iterable[RunSpec], results: Mapping[RunSpec, RunResult], *, retry: bool = False
) -> list[RunSpec]:
    """The runs without a result, or with ``retry`` without a good one."""
    done = {spec for spec, result in results.items() if result.status == "ok" or not retry}
    return [spec for spec in dict.fromkeys(specs) if spec not in done]


def default_jobs(device: str) -> int:
    """How many processes carry out runs on a device: one per core, or at most :data:`GPU_JOBS` on a GPU."""
    cores: int = cpu_count()
    return cores if choose_device(device).type == "cpu" else min(GPU_JOBS, cores)


def cost(spec: RunSpec) -> float:
    """A rough estimate of the time that a run takes, in an arbitrary unit; it decides which runs start first.

    A node costs as much as 70 edges: in results/two-cores.jsonl a run takes 168 s on Pubmed and 65 s on Squirrel. A
    graph that is not the paper's counts as one of some thousand nodes.
    """
    size, options = paper.DATASETS.get(spec.dataset), dict(spec.options)
    trainings = options["search_trials"] * options["search_splits"] if spec.task == "search" else 1
    return trainings * (5000 + (70 * size.nodes + size.edges if size else 100_000))


def execute(
    specs: Sequence[RunSpec],
    store: str | os.PathLike[str],
    executor: Executor,
    *,
    device: str = "auto",
    root: str | os.PathLike[str] | None = None,
    runs_after_search: int = 0,
    minutes: float | None = None,
    trials: str | os.PathLike[str] | None = None,
    on_result: Callable[[RunResult], None] = lambda result: None,
) -> None:
    """Let an executor carry out runs, the most expensive first, and store each result as soon as it arrives.

    The time of spectral features is measured in this process, when all others are done: they would disturb it.

    Args:
        store: The file of results.
        device: Where to train; every worker chooses its own if it is ``"auto"``.
        root: A folder with dataset files, searched first.
        runs_after_search: How many runs follow a search.
        minutes: Begin no run, and no trial of a search, after so many minutes.
        trials: A file for the trials of searches, which all workers can reach, so that one that is interrupted goes on
            later. By default it begins again.
        on_result: Called with each result that is stored.
    """
    end = math.inf if minutes is None else time.time() + 60 * check_number("minutes", minutes, above=0)
    choose_device(device)
    check_writable(Path(store).parent)
    of_searches = (dict(spec.options).get("search_splits", 0) for spec in specs)
    splits = max([runs_after_search, *(spec.run + 1 for spec in specs), *of_searches])
    folder, searches = (None if path is None else Path(path) for path in (root, trials))
    runner = Runner(device, folder, splits, end, searches)
    timed = [spec for spec in specs if spec.task == "features"]
    others = sorted((spec for spec in specs if spec.task != "features"), key=cost, reverse=True)
    for queue, workers in ((deque(others), executor), (deque(timed), HERE)):
        for spec, found in workers.each(runner, queue):
            result = _failed(spec, str(found), torch.device("cpu")) if isinstance(found, WorkerLost) else found
            if result is not None:
                append_records(store, result.to_record())
                on_result(result)
                if spec.task == "search":
                    queue.extend(runs_after(result, runs_after_search))


@dataclass
class Runner:
    """The function that workers call with the specification of a run to carry it out.

    It keeps what it has prepared for further runs of the group, but that is not pickled with it.

    Args:
        device, root, trials: As in :func:`execute`.
        splits: The number of splits that a graph is loaded with.
        end: Nothing is begun after this time, in seconds since 1970, a clock that processes share.
    """

    device: str
    root: Path | None
    splits: int
    end: float = math.inf
    trials: Path | None = None
    _ready: tuple[RunSpec, Callable[[RunSpec], RunResult | None]] | None = field(default=None, init=False)

    def __call__(self, spec: RunSpec) -> RunResult | None:
        """The result of a run, which may be a failure; ``None`` if there is no time left for it."""
        if time.time() >= self.end:
            return None
        device = choose_device(self.device)
        try:
            if self._ready is None or self._ready[0] != spec.group:
                self._ready = spec.group, self._prepared(spec, device)
            return self._ready[1](spec)
        except Exception as error:
            return _failed(spec, f"{type(error).__name__}: {error}", device)

    def _prepared(self, first: RunSpec, device: torch.device) -> Callable[[RunSpec], RunResult | None]:
        """The function that carries out runs that differ from the first in their number."""
        how: dict[str, Any] = {"seed": first.seed, "root": self.root}
        kind = None if first.split == "none" else first.split
        data = load(first.dataset, split=kind, runs=self.splits, directed=first.directed, **how)
        if first.task == "features":
            return partial(time_features, data=data, device=device)
        if first.task == "search":
            return partial(self._search, data=data, device=device)
        prepared = Preparations(resolve(first.method, options=dict(first.options)), data, device=device, **how)
        return lambda spec: train_run(spec, prepared.on(spec.run), on_epoch=check_wanted)

    def _search(self, spec: RunSpec, data: Data, device: torch.device) -> RunResult | None:
        """Search for hyper-parameters, or go on with that; ``None`` if the time is up before all trials are done."""
        began, options, method = time.perf_counter(), dict(spec.options), searched_method(spec)
        defaults = find_method(method.name).options()
        with tempfile.TemporaryDirectory() as folder:
            wanted = Search(
                method,
                data,
                runs=options["search_splits"],
                metric=spec.metric,
                seed=spec.seed,
                device=str(device),
                storage=self.trials or Path(folder, "trials.jsonl"),
                fixed=[name for name, value in method.options().items() if defaults[name] != value],
                root=self.root,
            )
            trials = int(min(options["search_trials"], wanted.combinations))
            try:
                found = search(wanted, trials=trials, seconds=None if self.end == math.inf else self.end - time.time())
            except InputError:  # no trial was finished
                if time.time() < self.end:
                    raise
                return None
        if found.trials < trials and time.time() >= self.end:
            return None
        metrics = {"validation": round(found.score, 6), "trials": found.trials, "options": found.options}
        return RunResult(spec, "ok", metrics, round(time.perf_counter() - began, 3), **_provenance(device))

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_ready": None}
