"""Carry out runs: train, search or time one, and let the workers of an executor do many.

Only this process writes the results, each as soon as it arrives, so only runs under way are lost when it ends early.
"""

from __future__ import annotations

import math
import os
import platform
import random
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import torch
from joblib import cpu_count
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.search import Search, search
from gcnsl.checks import check_number
from gcnsl.datasets import load
from gcnsl.errors import DownloadError, InputError
from gcnsl.evaluation.measured import learned_agreement
from gcnsl.execution import one_thread
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import fixed_options, runs_after, searched_method
from gcnsl.experiments.plan import CURVE_STEP
from gcnsl.experiments.records import RunResult, RunSpec, Status, by_key, result_file
from gcnsl.files import check_writable, digest
from gcnsl.graph import edge_homophily, split_masks
from gcnsl.methods import Fitted, Prepared, fit, initial_model, resolve
from gcnsl.runs.executor import HERE, Executor, WorkerLost, check_wanted
from gcnsl.runs.jobs import Preparations
from gcnsl.spectral import SpectralFeatures
from gcnsl.training import Epoch, choose_device
from gcnsl.version import __version__

GPU_JOBS = 16
"""The default number of processes that share a GPU, if there are as many cores: a single one leaves it idle most of the
time. NVIDIA's multi-process service lets them use it at once (8 processes on an H200: 12 s with it, 17 s without)."""
_START_COST = 5000
_OTHER_COST = 100_000
"""The cost of a graph that is not the paper's: that of a graph with some thousand nodes."""
_NODE_COST = 70
"""A node costs as much time as this many edges: in results/two-cores.jsonl a run takes 168 s on Pubmed and 65 s on
Squirrel."""
_WARM_UP_ROWS = 64


def train_run(spec: RunSpec, prepared: Prepared, *, on_epoch: Callable[[Epoch], None] | None = None) -> RunResult:
    """Train on one split, look at its test nodes once, at the end, and measure the learned graph.

    For curves, the test accuracy of every epoch goes into the history, too; it decides nothing.
    """
    began = time.perf_counter()
    masks = split_masks(prepared.graph, spec.run)
    watch = {"test": masks["test"]} if spec.curves else None
    training: dict[str, Any] = {"train_mask": masks["train"], "val_mask": masks["val"], "watch": watch}
    fitted = fit(prepared, **training, seed=spec.train_seed, on_epoch=on_epoch)
    accuracy = fitted.accuracy(masks)
    seconds = time.perf_counter() - began
    history = fitted.history
    curves = {part: history[f"{part}_accuracy"][::CURVE_STEP] for part in ("train", "val", "test") if spec.curves}
    metrics = {
        **accuracy,
        **({} if spec.metric == "accuracy" else {spec.test_score: fitted.measure(masks["test"])[spec.metric]}),
        **{f"{part}_nodes": int(masks[part].sum()) for part in ("train", "test")},
        "epochs": len(history),
        "best_epoch": history.best_epoch,
        **_homophily(spec, fitted),
    }
    return RunResult(
        spec=spec,
        status="ok",
        metrics={name: _rounded(value) for name, value in metrics.items()},
        seconds=round(seconds, 3),
        split_hash=digest(masks)[:16],
        history={part: [round(value, 4) for value in curve] for part, curve in curves.items()},
        **_provenance(prepared.device),
    )


def _rounded(value: float | None) -> float | None:
    """A metric as it is stored; ``None`` where it is not defined."""
    return None if value is None or math.isnan(value) else round(value, 6)


def _homophily(spec: RunSpec, fitted: Fitted) -> dict[str, float | None]:
    """What is known of the given graph and of the learned one before and after training; empty if none is learned.

    Metrics that end in ``_featured`` are of the graphs among the nodes with features. GCN-SL's shift makes all rows
    without features equal, so that A* joins their nodes whatever it has learned.
    """
    prepared, model = fitted.prepared, fitted.model
    if not getattr(model, "learns_graph", False):
        return {}
    x, initial = prepared.graph.x, initial_model(prepared, spec.train_seed).eval()
    featured = x.abs() @ torch.ones(x.shape[1], dtype=x.dtype) > 0
    everywhere = _graph_metrics(prepared, model, initial, torch.ones_like(featured))
    among = _graph_metrics(prepared, model, initial, featured)
    return everywhere | {f"{name}_featured": value for name, value in among.items()}


def _graph_metrics(prepared: Prepared, model: Any, initial: Any, nodes: Tensor) -> dict[str, float | None]:
    """Homophily and degree of the graphs among some nodes (n, boolean); ``None`` where there are no edges."""
    graph = prepared.graph
    learned, before = (learned_agreement(each, prepared.inputs, graph.y, among=nodes) for each in (model, initial))
    original = edge_homophily(graph.edge_index[:, nodes[graph.edge_index].all(dim=0)], graph.y, loops=True)
    return {
        "homophily": learned and learned.homophily,
        "degree": learned and learned.degree,
        "homophily_initial": before and before.homophily,
        "homophily_original": original,
    }


def search_run(
    spec: RunSpec,
    data: Data,
    *,
    device: torch.device,
    storage: Path,
    root: Path | None = None,
    seconds: float | None = None,
) -> RunResult | None:
    """Search for hyper-parameters, or go on with a search that was interrupted.

    Args:
        storage: The file of trials.
        seconds: Start no trial after so many seconds.

    Returns:
        ``None`` if the time is up before all trials are done.
    """
    began, options = time.perf_counter(), dict(spec.options)
    wanted = Search(
        searched_method(spec),
        data,
        runs=options["search_splits"],
        metric=spec.metric,
        seed=spec.seed,
        device=str(device),
        storage=storage,
        fixed=fixed_options(spec),
        root=root,
    )
    trials = int(min(options["search_trials"], wanted.combinations))

    def is_late() -> bool:
        return seconds is not None and time.perf_counter() - began >= seconds

    try:
        found = search(wanted, trials=trials, seconds=seconds)
    except InputError:  # no trial was finished
        if is_late():
            return None
        raise
    if found.trials < trials and is_late():
        return None
    metrics = {"validation": round(found.score, 6), "trials": found.trials, "options": found.options}
    elapsed = round(time.perf_counter() - began, 3)
    return RunResult(spec=spec, status="ok", metrics=metrics, seconds=elapsed, **_provenance(device))


def time_features(spec: RunSpec, data: Data, *, device: torch.device) -> RunResult:
    """Time the computation of a graph's spectral features.

    It runs in one thread: the gain from several depends more on the machine than on the method.
    """
    x = data.x.to(device)
    options: dict[str, Any] = {"method": spec.method, "random_state": spec.train_seed}
    warm_up = torch.ones(_WARM_UP_ROWS, 2, device=device)
    with one_thread():
        SpectralFeatures(**options, n_components=2, n_anchors=2).fit_transform(warm_up)
        _synchronize(device)
        began = time.perf_counter()
        SpectralFeatures(**options, **dict(spec.options)).fit_transform(x)
        _synchronize(device)
        seconds = round(time.perf_counter() - began, 6)
    return RunResult(spec=spec, status="ok", metrics={"seconds": seconds}, seconds=seconds, **_provenance(device))


def failed_run(spec: RunSpec, error: BaseException | str, *, device: torch.device) -> RunResult:
    """The result of a run that failed."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return RunResult(spec=spec, status="failed", error=" ".join(text.split())[:500], **_provenance(device))


def _provenance(device: torch.device) -> dict[str, Any]:
    """The machine, the version of this package and the time."""
    gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if gpu else f"CPU ({platform.machine()}, {os.cpu_count()} cores)"
    finished = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return {"device": name, "version": __version__, "finished": finished}


def _synchronize(device: torch.device) -> None:
    """Wait until a GPU has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


OnResult = Callable[[RunSpec, Status], None]


def missing_runs(specs: Iterable[RunSpec], results: Mapping[str, RunResult], *, retry: bool = False) -> list[RunSpec]:
    """The runs without a result, or with ``retry`` without a good one; ``results`` is by key."""
    done = {key for key, result in results.items() if result.status == "ok" or not retry}
    return [spec for spec in dict.fromkeys(specs) if spec.key not in done]


def default_jobs(device: str) -> int:
    """How many processes carry out runs on a device: one per core, or at most :data:`GPU_JOBS` on a GPU."""
    cores: int = cpu_count()
    return cores if choose_device(device).type == "cpu" else min(GPU_JOBS, cores)


def cost(spec: RunSpec) -> float:
    """A rough estimate of the time that a run takes, in an arbitrary unit; it decides which runs start first."""
    size = paper.DATASETS.get(spec.dataset)
    options = dict(spec.options)
    trainings = options["search_trials"] * options["search_splits"] if spec.task == "search" else 1
    return trainings * (_START_COST + (_NODE_COST * size.nodes + size.edges if size else _OTHER_COST))


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
    on_result: OnResult | None = None,
) -> None:
    """Let an executor carry out runs, and store each result as soon as it arrives.

    Runs that another program has added to the store since are not begun. The time of spectral features is measured in
    this process, when all others are done: they would disturb it.

    Args:
        store: The file of results.
        device: Where to train; every worker chooses its own if it is ``"auto"``.
        root: A folder with dataset files, searched first.
        runs_after_search: How many runs follow a search.
        minutes: Begin no run, and no trial of a search, after so many minutes.
        trials: A folder for the trials of searches, so that one that is interrupted goes on later; it must be the same
            for all workers. By default a search that is interrupted begins again.
        on_result: Called with each run that is finished.
    """
    end = math.inf if minutes is None else time.time() + 60 * check_number("minutes", minutes, above=0)
    choose_device(device)
    check_writable(Path(store).parent)
    of_searches = (dict(spec.options).get("search_splits", 0) for spec in specs)
    splits = max([runs_after_search, *(spec.run + 1 for spec in specs), *of_searches])
    runner = Runner(device, None if root is None else Path(root), splits, end, None if trials is None else Path(trials))
    batch = _Batch(specs, store, runs_after_search, on_result)
    timed = [spec for spec in specs if spec.task == "features"]
    for some, workers in (([spec for spec in specs if spec.task != "features"], executor), (timed, HERE)):
        unread = batch.carry_out(some, runner, workers)
        for _, same in groupby(sorted(unread, key=_graph_key), key=_graph_key):
            several = list(same)
            try:
                sent = replace(runner, graph=load_graph(several[0], runner.root, runs=splits))
            except Exception as error:  # it is not here either
                for spec in several:
                    batch.keep(failed_run(spec, error, device=choose_device(device)))
                continue
            batch.carry_out(several, sent, workers)


class _Batch:
    """Runs that are being carried out, and the file of their results, to which other programs may append, too."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        store: str | os.PathLike[str],
        runs_after_search: int,
        on_result: OnResult | None,
    ) -> None:
        self._file, self._runs_after_search, self._on_result = result_file(store), runs_after_search, on_result
        self._asked = {spec.key for spec in specs}  # what follows a search is not asked for

    def carry_out(self, specs: Sequence[RunSpec], runner: Runner, executor: Executor) -> list[RunSpec]:
        """Carry out runs, the most expensive first, and return those whose graph the workers don't have."""
        # Equally expensive groups come in any order: another program with the same store begins elsewhere.
        unread, by_chance = [], {key: random.random() for key in {spec.group.key for spec in specs}}
        queue = deque(sorted(specs, key=lambda spec: (-cost(spec), by_chance[spec.group.key], spec.run)))
        self._leave_out_done(queue)
        for spec, result in executor.each(runner, queue):
            if isinstance(result, DownloadError):
                unread.append(spec)
            elif isinstance(result, WorkerLost):
                self.keep(failed_run(spec, str(result), device=choose_device("cpu")))
            elif result is not None:
                self.keep(result)
                if spec.task == "search":
                    runner.forget(spec)
                    queue.extend(runs_after(result, self._runs_after_search))
            self._leave_out_done(queue)
        return unread

    def keep(self, result: RunResult) -> None:
        """Store a result."""
        self._file.append(result.to_record())
        self._tell(result.spec, result.status)

    def _leave_out_done(self, queue: deque[RunSpec]) -> None:
        """Remove runs from the queue that another program has done in the meantime."""
        good = {key for key, result in by_key(chain(*self._file.new())).items() if result.status == "ok"}
        for spec in [spec for spec in queue if spec.key in good]:
            queue.remove(spec)
            self._tell(spec, "ok")

    def _tell(self, spec: RunSpec, status: Status) -> None:
        if self._on_result is not None and spec.key in self._asked:
            self._on_result(spec, status)


@dataclass
class Runner:
    """The function that workers call with the specification of a run to carry it out.

    It keeps the prepared graph for further runs that use it, but that is not pickled with it.

    Args:
        device, root, trials: As in :func:`execute`.
        splits: The number of splits that a graph is loaded with.
        end: Nothing is begun after this time, in seconds since 1970, a clock that processes share.
        graph: The graph of all runs, if the workers can't read it by its name.
    """

    device: str
    root: Path | None
    splits: int
    end: float = math.inf
    trials: Path | None = None
    graph: Data | None = None
    _ready: tuple[str, Callable[[RunSpec], RunResult | None]] | None = field(default=None, init=False)

    def __call__(self, spec: RunSpec) -> RunResult | DownloadError | None:
        """The result of a run, which may be a failure; ``None`` if there is no time left for it."""
        if self.is_late:
            return None
        device = choose_device(self.device)
        try:
            if self._ready is None or self._ready[0] != spec.group.key:
                self._ready = spec.group.key, self._prepared(spec, device)
            return self._ready[1](spec)
        except DownloadError as error:
            return error if self.graph is None else failed_run(spec, error, device=device)
        except Exception as error:
            return failed_run(spec, error, device=device)

    @property
    def is_late(self) -> bool:
        """Whether there is no time left to begin a run."""
        return time.time() >= self.end

    def _prepared(self, first: RunSpec, device: torch.device) -> Callable[[RunSpec], RunResult | None]:
        """The function that carries out runs that differ from the first in their number."""
        data = load_graph(first, self.root, runs=self.splits) if self.graph is None else self.graph
        if first.task == "features":
            return partial(time_features, data=data, device=device)
        if first.task == "search":
            return partial(self._search, data=data, device=device)
        method = resolve(first.method, options=dict(first.options))
        prepared = Preparations(method, data, seed=first.seed, device=device, root=self.root)
        return lambda spec: train_run(spec, prepared.on(spec.run), on_epoch=check_wanted)

    def _search(self, spec: RunSpec, data: Data, device: torch.device) -> RunResult | None:
        left = None if self.end == math.inf else self.end - time.time()
        how: dict[str, Any] = {"device": device, "root": self.root, "seconds": left}
        with tempfile.TemporaryDirectory() if self.trials is None else nullcontext(self.trials) as folder:
            return search_run(spec, data, storage=Path(folder, f"search-{spec.key}.jsonl"), **how)

    def forget(self, search: RunSpec) -> None:
        """Remove the trials of a search that is finished, and their lock."""
        if self.trials is not None:
            for name in (f"search-{search.key}.jsonl", f".search-{search.key}.jsonl.lock"):
                (self.trials / name).unlink(missing_ok=True)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_ready": None}


def load_graph(spec: RunSpec, root: Path | None, *, runs: int) -> Data:
    """The graph of a run, with so many splits."""
    split = None if spec.split == "none" else spec.split
    return load(spec.dataset, split=split, runs=runs, seed=spec.seed, root=root, directed=spec.directed)


def _graph_key(spec: RunSpec) -> tuple[str, str, int, bool]:
    """What a graph and its splits depend on."""
    return spec.dataset, spec.split, spec.seed, spec.directed
