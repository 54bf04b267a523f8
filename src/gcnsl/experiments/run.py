"""Carry out runs on all cores or on a GPU.

Every process stores a result as soon as it has it, so only unfinished runs are lost when the program ends early.
"""

import math
import os
import random
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from joblib import cpu_count
from torch_geometric.data import Data

from gcnsl.checks import check_number, check_whole
from gcnsl.datasets import load
from gcnsl.errors import InputError
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import runs_after
from gcnsl.experiments.measure import failed_run, search_run, time_features, train_run
from gcnsl.experiments.result_exports import export_lines
from gcnsl.experiments.result_store import ResultStore, RunResult, Status, StoreWarning
from gcnsl.experiments.spec import RunSpec
from gcnsl.methods import resolve
from gcnsl.runs.executor import WorkerLost, check_wanted
from gcnsl.runs.jobs import Preparations
from gcnsl.runs.processes import Processes
from gcnsl.training import choose_device

GPU_JOBS = 16
"""The default number of processes that share a GPU, if there are as many cores: a single one leaves it idle most of the
time. NVIDIA's multi-process service lets them use it at once (8 processes on an H200: 12 s with it, 17 s without)."""
_SHARES = 4
"""The work is divided into at least this many parts per process, so that all processes end at about the same time."""
_POLL_SECONDS = 0.5
_START_COST = 5000
_OTHER_COST = 100_000
"""The cost of a graph that is not the paper's: that of a graph with some thousand nodes."""
_NODE_COST = 70
"""A node costs as much time as this many edges: in results/two-cores.jsonl a run takes 168 s on Pubmed and 65 s on
Squirrel."""

Group = Sequence[RunSpec]
OnResult = Callable[[RunSpec, Status], None]


@dataclass(frozen=True)
class Work:
    """What a process must know to carry out runs; in the main process, ``is_worker`` is false.

    A search is followed by so many ``runs`` with what it has found. Nothing is begun after ``end``, in seconds since
    1970, a clock that processes share.
    """

    store: Path
    device: torch.device
    root: Path | None
    runs: int = 0
    end: float = math.inf
    is_worker: bool = False

    @property
    def seconds_left(self) -> float:
        """The time in which runs may begin."""
        return self.end - time.time()

    def trials_of(self, search: RunSpec) -> Path:
        """The file with the trials of a search that is not finished, beside the store."""
        return self.store.with_name(f"{self.store.stem}-search-{search.key}.jsonl")


def missing_runs(specs: Iterable[RunSpec], results: Mapping[str, RunResult], *, retry: bool = False) -> list[RunSpec]:
    """The runs without a result, or with ``retry`` without a good one; ``results`` is by key."""
    done = {key for key, result in results.items() if result.status == "ok" or not retry}
    return [spec for spec in dict.fromkeys(specs) if spec.key not in done]


def execute(
    specs: Sequence[RunSpec],
    store: str | os.PathLike[str],
    *,
    device: str = "auto",
    jobs: int | None = None,
    root: str | os.PathLike[str] | None = None,
    runs_after_search: int = 0,
    minutes: float | None = None,
    on_result: OnResult | None = None,
) -> None:
    """Carry out runs and store their results; a run with a good result by the time it would start is skipped.

    Args:
        jobs: The number of processes; ``None`` for one per core, or at most :data:`GPU_JOBS` on a GPU. With 1, this
            process does the work itself, except for runs during which an earlier process was killed: they come last,
            each in a process of its own, so that they can't end this one, too.
        runs_after_search: How many runs follow a search at once, in the same process.
        minutes: Begin no run, and no trial of a search, after so many minutes.
        on_result: Called with each finished run, in another thread.
    """
    end = math.inf if minutes is None else time.time() + 60 * check_number("minutes", minutes, above=0)
    work = Work(Path(store), choose_device(device), None if root is None else Path(root), runs_after_search, end)
    if jobs is None:
        cores = cpu_count()
        jobs = cores if work.device.type == "cpu" else min(GPU_JOBS, cores)
    check_whole("jobs", jobs, least=1)
    with _watch(specs, work.store, on_result):
        _in_processes([spec for spec in specs if spec.task != "features"], work, jobs)
        # Other processes would disturb the timing.
        _one_by_one([spec for spec in specs if spec.task == "features"], work)


def cost(spec: RunSpec) -> float:
    """A rough estimate of the time that a run takes, in an arbitrary unit; it decides which runs start first."""
    size = paper.DATASETS.get(spec.dataset)
    options = dict(spec.options)
    trainings = options["search_trials"] * options["search_splits"] if spec.task == "search" else 1
    return trainings * (_START_COST + (_NODE_COST * size.nodes + size.edges if size else _OTHER_COST))


def _groups(specs: Sequence[RunSpec], shares: int) -> list[Group]:
    """Divide runs into groups that use the same prepared graph, the most expensive first.

    A group costs at most one of so many equal shares of the total, unless it is a single run.
    """
    ordered = sorted(specs, key=lambda spec: (spec.group.key, spec.run))
    share = sum(map(cost, specs)) / shares
    parts = []
    for _, same in groupby(ordered, key=lambda spec: spec.group.key):
        group = list(same)
        size = max(1, int(share / cost(group[0])))
        parts += [group[first : first + size] for first in range(0, len(group), size)]
    random.Random().shuffle(parts)  # so that two programs with the same store do not start with the same runs
    return sorted(parts, key=lambda part: -cost(part[0]))


def _one_by_one(specs: Sequence[RunSpec], work: Work) -> None:
    for group in _groups(specs, shares=1):
        run_group(group, work)


def _in_processes(specs: Sequence[RunSpec], work: Work, jobs: int) -> None:
    """Carry out runs in processes, and again in fewer of them if one dies, most likely for lack of memory."""
    if jobs == 1:
        with ResultStore(work.store) as store:
            killed = store.unfinished()
        _one_by_one([spec for spec in specs if spec.key not in killed], work)
        _each_alone([spec for spec in specs if spec.key in killed], work)
        return
    before = _finished(work.store)
    for fewer in (jobs, max(2, jobs // 2)):
        if _all_survive(_groups(specs, fewer * _SHARES), work, fewer):
            return
        now = _finished(work.store)
        specs = [spec for spec in specs if now.get(spec.key) == before.get(spec.key)]
    _each_alone(specs, work)


def _each_alone(specs: Sequence[RunSpec], work: Work) -> None:
    """Carry out each run in a process of its own; if it dies, the run has failed."""
    for spec in specs:
        if not _all_survive([[spec]], work, jobs=1):
            with ResultStore(work.store) as store:
                store.add(failed_run(spec, "its process was killed, perhaps for lack of memory", device=work.device))


def _all_survive(groups: list[Group], work: Work, jobs: int) -> bool:
    """Carry out groups of runs in processes until one of these dies; return whether none did."""
    call = partial(run_group, work=replace(work, is_worker=True))
    with Processes(jobs) as processes:
        return not any(isinstance(lost, WorkerLost) for _, lost in processes.each(call, deque(groups)))


def run_group(group: Group, work: Work) -> None:
    """Carry out runs that use the same prepared graph, one by one, and store each result at once.

    After a search, the runs with what it has found are carried out, too.
    """
    if work.is_worker:
        warnings.simplefilter("ignore", StoreWarning)  # the main process watches the store and says it
    if work.seconds_left <= 0:
        return
    following: Group = ()
    with ResultStore(work.store) as store:
        try:
            data = load_graph(group[0], work.root, runs=max(spec.run for spec in group) + 1)
            measure = measure_on(data, group[0], work)
        except Exception as error:  # it would happen to every run of the group
            store_or_rescue([failed_run(spec, error, device=work.device) for spec in group], store)
            return
        for spec in group:
            if store.has(spec):  # another process was faster
                continue
            if work.seconds_left <= 0:
                return
            with store.begun(spec):
                try:
                    result = measure(spec)
                except Exception as error:
                    result = failed_run(spec, error, device=work.device)
                if result is None:  # a search that has no time left
                    return
                store_or_rescue([result], store)
            if spec.task == "search":
                trials = work.trials_of(spec)
                for file in (trials, trials.with_name(f".{trials.name}.lock")):
                    file.unlink(missing_ok=True)
                following = runs_after(result, work.runs)
    if following:
        run_group(following, work)


def store_or_rescue(results: Sequence[RunResult], store: ResultStore) -> None:
    """Store results; if the store can't be used, write them to a temporary file and say which."""
    try:
        store.add(*results)
    except InputError as error:
        rescued = Path(tempfile.mkdtemp(prefix="gcnsl-"), "results.jsonl")
        export_lines(results, rescued)
        raise InputError(f"{error}; what is not stored is in {rescued}: --merge adds it") from error


def load_graph(spec: RunSpec, root: Path | None, *, runs: int) -> Data:
    """The graph of a run, with splits for so many runs like it, or for a search."""
    return load(
        spec.dataset,
        split=None if spec.split == "none" else spec.split,
        runs=max(runs, dict(spec.options).get("search_splits", 0)),
        seed=spec.seed,
        root=root,
        directed=spec.directed,
    )


def measure_on(data: Data, first: RunSpec, work: Work) -> Callable[[RunSpec], RunResult | None]:
    """The function that carries out runs that differ from the first in their number; what they share is prepared once.

    It gives ``None`` for a search that has no time left.
    """
    if first.task == "features":
        return partial(time_features, data=data, device=work.device)
    if first.task == "search":
        left = None if work.end == math.inf else work.seconds_left
        where: dict[str, Any] = {"device": work.device, "storage": work.trials_of(first), "root": work.root}
        return partial(search_run, data=data, seconds=left, **where)
    method = resolve(first.method, options=dict(first.options))
    prepared = Preparations(method, data, seed=first.seed, device=work.device, root=work.root)
    return lambda spec: train_run(spec, prepared.on(spec.run), on_epoch=check_wanted)


@contextmanager
def _watch(specs: Sequence[RunSpec], store: Path, on_result: OnResult | None) -> Iterator[None]:
    """Report each of these runs once the store has a new result of it."""
    if on_result is None:
        yield
        return
    waiting = {spec.key: spec for spec in specs}
    before = _finished(store)

    def look() -> None:
        try:
            now = _finished(store)
        except InputError:  # the process that writes will say so
            return
        for key, state in now.items():
            if key in waiting and before.get(key) != state:
                on_result(waiting.pop(key), state[0])

    with watching(look, every=_POLL_SECONDS):
        yield


def _finished(path: Path) -> dict[str, tuple[Status, str]]:
    with ResultStore(path) as store:
        return store.finished()


@contextmanager
def watching(look: Callable[[], None], *, every: float) -> Iterator[None]:
    """While the block runs, call ``look`` in another thread every so many seconds, and once more at the end."""
    over = threading.Event()

    def keep_looking() -> None:
        while not over.wait(every):
            look()
        look()

    thread = threading.Thread(target=keep_looking)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
