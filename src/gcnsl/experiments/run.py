"""Do the runs that are planned and not done yet, on all cores or on a GPU.

Every process writes what it has finished at once, so that a run is lost only while it runs; done again, the same call
goes on where the last one ended, however it ended.
"""

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from joblib.externals.loky.process_executor import TerminatedWorkerError
from torch_geometric.data import Data

from gcnsl.datasets import load
from gcnsl.experiments import paper
from gcnsl.experiments.matching import by_key
from gcnsl.experiments.measure import failed_run, method_of, time_features, train_run
from gcnsl.experiments.results import ResultStore, RunResult, Status
from gcnsl.experiments.spec import RunSpec
from gcnsl.experiments.watching import watching
from gcnsl.experiments.workers import Worker, in_processes
from gcnsl.training import choose_device

GPU_JOBS = 16
"""Processes that share a GPU unless told otherwise, where there are so many cores: one alone leaves it idle most of the
time. NVIDIA's multi-process service lets them use it at once (8 processes on an H200: 12 s with it, 17 s without)."""
_SHARES = 4
"""A process gets its work in at least so many parts, where there is enough, so that none waits for the last."""
_POLL_SECONDS = 0.5
_START_COST = 5000
_OTHER_COST = 100_000
"""Of graphs that are not the paper's: as much as one of some thousand nodes."""
_NODE_COST = 70
"""A node takes as long as so many edges: in results/two-cores.jsonl a run takes 168 s on Pubmed, 65 s on Squirrel."""

Group = list[RunSpec]
OnResult = Callable[[RunSpec, Status], None]


@dataclass(frozen=True)
class Work:
    """What a process must know to do runs.

    Args:
        store: The file of results.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ...
        root: Folder with dataset files, searched first.
        retry: Whether runs that have failed are tried again.
        worker: The process's place among others; ``None`` for the one that was asked to do the work.
    """

    store: Path
    device: str
    root: Path | None
    retry: bool
    worker: Worker | None = None


def execute(
    specs: Iterable[RunSpec],
    store: str | os.PathLike[str],
    *,
    device: str = "auto",
    jobs: int | None = None,
    retry: bool = False,
    root: str | os.PathLike[str] | None = None,
    on_result: OnResult | None = None,
) -> None:
    """Do all runs that the store does not have.

    Args:
        specs: The runs.
        store: The file of results.
        device: ``"auto"``: a GPU if there is one.
        jobs: Processes; ``None`` for one a core, or :data:`GPU_JOBS` on a GPU. One works in this process.
        retry: Whether runs that have failed are tried again.
        root: Folder with dataset files, searched before ``$GCNSL_DATA``.
        on_result: Called with each run that is finished, in another thread.
    """
    device = str(choose_device(device))
    work = Work(Path(store), device, None if root is None else Path(root), retry)
    missing = missing_runs(specs, store, retry=retry)
    jobs = jobs or (os.cpu_count() or 1 if device == "cpu" else min(GPU_JOBS, os.cpu_count() or 1))
    with _watch(missing, work.store, on_result):
        _in_processes([spec for spec in missing if spec.task == "train"], work, jobs)
        timed = [spec for spec in missing if spec.task == "features"]
        _one_after_the_other(timed, work)  # beside others no time would mean anything


def missing_runs(specs: Iterable[RunSpec], store: str | os.PathLike[str], *, retry: bool = False) -> list[RunSpec]:
    """Those runs that the store does not have, each once; with ``retry`` also those that have failed."""
    with ResultStore(store) as open_store:
        known = by_key(open_store.results())
    done = {key for key, result in known.items() if result.status == "ok" or not retry}
    return [spec for spec in dict.fromkeys(specs) if spec.key not in done]


def cost(spec: RunSpec) -> float:
    """Roughly how long a run takes, in units of nothing: the large ones should start first."""
    size = paper.DATASETS.get(spec.dataset)
    return _START_COST + (_NODE_COST * size.nodes + size.edges if size else _OTHER_COST)


def _groups(specs: Sequence[RunSpec], shares: int) -> list[Group]:
    """Runs that read the same graph in the same form together, as many as cost no more than one of so many shares.

    The large ones come first.
    """
    ordered = sorted(specs, key=lambda spec: (spec.group.key, spec.run))
    share = sum(map(cost, specs)) / shares
    parts = []
    for _, same in groupby(ordered, key=lambda spec: spec.group.key):
        group = list(same)
        size = max(1, int(share / cost(group[0])))
        parts += [group[first : first + size] for first in range(0, len(group), size)]
    random.Random().shuffle(parts)  # so that two programs on one store do not begin with the same
    return sorted(parts, key=lambda part: -cost(part[0]))


def _one_after_the_other(specs: list[RunSpec], work: Work) -> None:
    for group in _groups(specs, shares=1):
        run_group(group, work)


def _in_processes(specs: list[RunSpec], work: Work, jobs: int) -> None:
    if jobs == 1:
        _one_after_the_other(specs, work)
        return
    for fewer in (jobs, max(2, jobs // 2)):  # one that died for want of memory has more of it then
        worker = Worker.one_of(fewer)
        call = partial(run_group, work=replace(work, worker=worker))
        try:
            in_processes(call, _groups(specs, fewer * _SHARES), jobs=fewer, worker=worker)
        except TerminatedWorkerError:
            specs = missing_runs(specs, work.store, retry=work.retry)
        else:
            return
    for spec in specs:
        _survive(spec, work)


def _survive(spec: RunSpec, work: Work) -> None:
    """Do one run in a process of its own; if that dies, of all things, the run has failed."""
    worker = Worker.one_of(2)
    call = partial(run_group, work=replace(work, worker=worker))
    try:
        in_processes(call, [[spec]], jobs=2, worker=worker)
    except TerminatedWorkerError:
        with ResultStore(work.store) as store:
            store.add(failed_run(spec, "its process was killed, perhaps for want of memory", device=work.device))


def run_group(group: Group, work: Work) -> None:
    """Do runs that read the same graph in the same form, one after the other, and store each at once."""
    if work.worker:
        work.worker.begin()
    with ResultStore(work.store) as store:
        try:
            first, runs = group[0], max(spec.run for spec in group) + 1
            split = None if first.split == "none" else first.split
            data = load(first.dataset, split=split, runs=runs, seed=first.seed, root=work.root)
            measure = _prepared(first, data, work)
        except Exception as error:  # whatever it is, it is the same for all of them
            store.add(*(failed_run(spec, error, device=work.device) for spec in group))
            return
        for spec in group:
            if store.has(spec):  # another process was faster
                continue
            try:
                result = measure(spec)
            except Exception as error:
                result = failed_run(spec, error, device=work.device)
            store.add(result)


def _prepared(first: RunSpec, data: Data, work: Work) -> Callable[[RunSpec], RunResult]:
    """How to do a run of a group, with all that its runs share already done."""
    if first.task == "features":
        return partial(time_features, data=data, device=work.device)
    prepared = method_of(first).config.prepare(data, seed=first.seed)
    inputs = tuple(value.to(choose_device(work.device)) for value in prepared)
    on_epoch = work.worker.stop_if_orphaned if work.worker else None
    return partial(train_run, data=data, inputs=inputs, device=work.device, on_epoch=on_epoch)


@contextmanager
def _watch(specs: list[RunSpec], path: Path, on_result: OnResult | None) -> Iterator[None]:
    """Tell of each of these runs when the store has it."""
    if on_result is None:
        yield
        return
    waiting = {spec.key: spec for spec in specs}

    def finished() -> dict[str, tuple[Status, str]]:
        with ResultStore(path) as store:
            return store.finished()

    def look() -> None:
        for key, (status, when) in finished().items():
            if key in waiting and before.get(key) != (status, when):
                on_result(waiting.pop(key), status)

    before = finished()
    with watching(look, every=_POLL_SECONDS):
        yield
