"""Carry out runs by workers that may be on other machines: they compute, and this process alone writes the store."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from torch_geometric.data import Data

from gcnsl.checks import check_number
from gcnsl.errors import DownloadError
from gcnsl.experiments.beyond import runs_after
from gcnsl.experiments.measure import failed_run
from gcnsl.experiments.result_store import ResultStore, RunResult
from gcnsl.experiments.run import OnResult, Work, cost, execute, load_graph, measure_on, store_or_rescue
from gcnsl.experiments.spec import RunSpec
from gcnsl.runs.executor import Executor, WorkerLost
from gcnsl.training import choose_device


def execute_elsewhere(
    specs: Sequence[RunSpec],
    store: str | os.PathLike[str],
    executor: Executor,
    *,
    device: str = "auto",
    root: str | os.PathLike[str] | None = None,
    runs_after_search: int = 0,
    minutes: float | None = None,
    on_result: OnResult | None = None,
) -> None:
    """Let an executor carry out runs, and store each result as soon as it arrives.

    The arguments are those of :func:`gcnsl.experiments.run.execute`; every worker chooses its own device. A search is
    one run: if its worker is killed, another begins it again. The time of spectral features is measured in this
    process, as there.
    """
    end = math.inf if minutes is None else time.time() + 60 * check_number("minutes", minutes, above=0)
    choose_device(device)
    trained = [spec for spec in specs if spec.task != "features"]
    for_searches = (dict(spec.options).get("search_splits", 0) for spec in trained)
    splits = max([runs_after_search, *(spec.run + 1 for spec in trained), *for_searches])
    runner = Runner(device, None if root is None else Path(root), splits, end)
    asked = {spec.key for spec in specs}
    with ResultStore(store) as opened:

        def keep(result: RunResult) -> None:
            store_or_rescue([result], opened)
            if on_result is not None and result.spec.key in asked:  # not a run that follows a search
                on_result(result.spec, result.status)

        unread = _carry_out(trained, runner, executor, runs_after_search, keep)
        for _, same in groupby(sorted(unread, key=_graph_key), key=_graph_key):
            several = list(same)
            try:
                sent = replace(runner, graph=load_graph(several[0], runner.root, runs=splits))
            except Exception as error:  # it is not here either
                for spec in several:
                    keep(failed_run(spec, error, device=choose_device(device)))
                continue
            _carry_out(several, sent, executor, runs_after_search, keep)
    timed = [spec for spec in specs if spec.task == "features"]
    if timed and time.time() < end:
        left = None if minutes is None else (end - time.time()) / 60
        execute(timed, store, device=device, jobs=1, root=root, minutes=left, on_result=on_result)


def _graph_key(spec: RunSpec) -> tuple[str, str, int, bool]:
    """What a graph and its splits depend on."""
    return spec.dataset, spec.split, spec.seed, spec.directed


def _carry_out(
    specs: Iterable[RunSpec],
    runner: Runner,
    executor: Executor,
    runs_after_search: int,
    keep: Callable[[RunResult], None],
) -> list[RunSpec]:
    """Carry out runs, the most expensive first, and return those whose graph the workers don't have."""
    unread = []
    queue = deque(sorted(specs, key=lambda spec: (-cost(spec), spec.group.key, spec.run)))
    for spec, result in executor.each(runner, queue):
        if isinstance(result, DownloadError):
            unread.append(spec)
        elif isinstance(result, WorkerLost):
            keep(failed_run(spec, str(result), device=choose_device("cpu")))
        elif result is not None:
            keep(result)
            queue.extend(runs_after(result, runs_after_search) if spec.task == "search" else ())
    return unread


@dataclass
class Runner:
    """The function that workers call with the specification of a run to carry it out.

    It keeps the prepared graph for further runs that use it, but that is not pickled with it.

    Args:
        device, root: As in :func:`execute_elsewhere`.
        splits: The number of splits that a graph is loaded with.
        end: Nothing is begun after this time, in seconds since 1970.
        graph: The graph of all runs, if the workers can't read it by its name.
    """

    device: str
    root: Path | None
    splits: int
    end: float = math.inf
    graph: Data | None = None
    _ready: tuple[str, Callable[[RunSpec], RunResult | None]] | None = field(default=None, init=False)

    def __call__(self, spec: RunSpec) -> RunResult | DownloadError | None:
        """The result of a run, which may be a failure; ``None`` if there is no time left for it."""
        if time.time() >= self.end:
            return None
        device = choose_device(self.device)
        try:
            with TemporaryDirectory() as folder:  # for the trials of a search
                work = Work(Path(folder) / "results.db", device, self.root, end=self.end)
                if spec.task == "search" or self._ready is None or self._ready[0] != spec.group.key:
                    self._ready = spec.group.key, measure_on(self._read(spec), spec, work)
                return self._ready[1](spec)
        except DownloadError as error:
            return error if self.graph is None else failed_run(spec, error, device=device)
        except Exception as error:
            return failed_run(spec, error, device=device)

    def _read(self, spec: RunSpec) -> Data:
        return load_graph(spec, self.root, runs=self.splits) if self.graph is None else self.graph

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_ready": None}
