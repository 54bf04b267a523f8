"""Hyper-parameters of one method, chosen by a metric on validation nodes alone: test nodes are not looked at.

A trial trains on one split after the other, and is given up when it falls behind the median of the trials before it.
Finished trials are in a file of JSON lines, so that a search goes on where it was interrupted or killed. Workers train,
but only the process that searches writes the file.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import optuna
import torch
from torch_geometric.data import Data

from gcnsl.auto.proposals import Study
from gcnsl.checks import UNLABELLED, check_choice, check_flag, check_number, check_seed, check_whole
from gcnsl.errors import InputError, TrainingDiverged
from gcnsl.graph import split_count, split_masks
from gcnsl.identity import identity
from gcnsl.methods import Method, find_method
from gcnsl.methods.registry import combinations, space_of, starts_of
from gcnsl.nn.config import Folder
from gcnsl.options import Search as SearchRange
from gcnsl.runs.executor import Executor, ThisProcess, WorkerLost
from gcnsl.runs.jobs import Failed, Finished, Job, Trainer
from gcnsl.runs.results import Record, Results
from gcnsl.training import METRICS, choose_device

_STARTUP_TRIALS = 10
_FEW = 32
"""If there are no more combinations than this, all of them are tried, each once."""
_WORST_LOSS = -100.0
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True)
class Search:
    """What to search for.

    Args:
        method: The method with the options to begin with; those that are not searched for stay as they are.
        data: A graph with labels and masks (n × splits).
        runs: Number of splits that a trial is judged by; if there are fewer, they are used again with other seeds.
        metric: What a trial is judged by, a name of :data:`gcnsl.training.METRICS`.
        seed: Of the search, of anchors and of weights.
        storage: The file of trials, in which searches for other things may be, too.
        candidates: Further options to try before others, by name.
        grid: Whether to try all combinations of the few values in the method's literature, and no others.
        fixed: Options that are not searched for.
        root: A folder with dataset files, searched first.
    """

    method: Method
    data: Data
    runs: int = 5
    metric: str = "accuracy"
    seed: int = 42
    device: str = "auto"
    storage: str | os.PathLike[str] = "search.jsonl"
    candidates: Sequence[Mapping[str, Any]] = ()
    grid: bool = False
    fixed: Collection[str] = ()
    root: Folder = None

    def __post_init__(self) -> None:
        check_whole("runs", self.runs, least=1)
        check_seed(self.seed)
        check_flag("grid", self.grid)
        check_choice("metric", self.metric, METRICS)
        split_masks(self.data, 0)
        space_of(self.method.name, grid=self.grid)
        choose_device(self.device)

    @cached_property
    def space(self) -> dict[str, SearchRange]:
        """What is searched for."""
        whole = space_of(self.method.name, grid=self.grid)
        fixed = self.fixed if self.metric == "accuracy" else {*self.fixed, "monitor"}  # it is the metric then
        return {name: suggest for name, suggest in whole.items() if name not in fixed}

    @property
    def combinations(self) -> float:
        """How many different trials there can be; infinite if the space is not searched exhaustively."""
        count = combinations(self.space)
        return count if self.grid or count <= _FEW else math.inf

    @property
    def first(self) -> list[dict[str, Any]]:
        """What is tried before all else: the method as it is, what is known to be good, or all there is."""
        if self.combinations < math.inf:
            values = (suggest.values or () for suggest in self.space.values())
            return [dict(zip(self.space, chosen, strict=True)) for chosen in itertools.product(*values)]
        starts = ({name: start[name] for name in start if name in self.space} for start in starts_of(self.method.name))
        methods = (
            self.method,
            *(self.method.with_options(**options) for options in self.candidates),
            find_method(self.method.name),
            *(self.method.with_options(**start) for start in starts),
        )
        return [self.searched(method) for method in methods]

    def searched(self, method: Method) -> dict[str, Any]:
        """Those options of a method that are searched for."""
        options = method.options()
        return {name: options[name] for name in self.space}

    def finished(self) -> list[Trial]:
        """The trials that earlier searches for the same have finished."""
        path = Path(self.storage)
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(_SQLITE)) == _SQLITE:
                    raise InputError(f"{path} holds trials of gcnsl 0.2.0: give another file for those of this version")
        return [trial for search, trial in Results(path, _parse).new() if search == self.identity]

    @cached_property
    def identity(self) -> str:
        """Tells searches apart: a trial of another one says nothing about this one.

        The options to begin with are not a part of it, only those that are not searched for.
        """
        masks = {name: self.data[name] for name in ("train_mask", "val_mask")}
        looked_at = (masks["train_mask"] | masks["val_mask"]).reshape(len(self.data.y), -1).any(dim=1)
        constant = {name: value for name, value in self.method.options().items() if name not in self.space}
        return identity(
            self.data,
            {**masks, "y": torch.where(looked_at, self.data.y, UNLABELLED)},
            method=self.method.name,
            options=constant,
            searched=sorted(self.space),
            grid=self.grid,
            metric=self.metric,
            runs=self.runs,
            seed=self.seed,
        )


class Trial(NamedTuple):
    """A trial that is finished.

    Attributes:
        options: What was searched for.
        gains: After each run, the mean of the metric until then, with the sign that makes more better.
        is_complete: Whether it has all runs; otherwise it fell behind.
    """

    options: dict[str, Any]
    gains: list[float]
    is_complete: bool


class SearchResult(NamedTuple):
    """The best of a search.

    Attributes:
        options: What was searched for.
        score: Mean of the metric on validation nodes.
        start: The same of the method as it was given; ``None`` if there is no complete trial of it.
        trials: Number of trials so far.
    """

    options: dict[str, Any]
    score: float
    start: float | None
    trials: int


def search(
    wanted: Search,
    *,
    trials: int,
    seconds: float | None = None,
    executor: Executor | None = None,
    on_trial: Callable[[int, float | None], None] | None = None,
) -> SearchResult:
    """Search until there are so many trials, those of earlier calls and those given up counted, and return the best.

    Args:
        wanted: What to search for.
        trials: How many trials there should be in the end; at most all combinations, where there are few.
        seconds: Start no trial after so many seconds.
        executor: Who trains; ``None`` for this process.
        on_trial: Called at once, and after each trial, with the number of trials and the best value of the metric.
    """
    check_whole("trials", trials, least=1)
    end = math.inf if seconds is None else time.monotonic() + check_number("seconds", seconds, above=0)
    order, executor = _Trials(wanted, int(min(trials, wanted.combinations)), end), executor or ThisProcess()
    trainer = Trainer(
        wanted.data, partial(_gain, wanted.metric), seed=wanted.seed, device=wanted.device, root=wanted.root
    )
    jobs, told = deque(order.begin(executor.slots)), -1
    if on_trial is not None:
        on_trial(told := len(order.done), order.best)
    for job, result in executor.each(trainer, jobs):
        jobs.extend(order.go_on(job, result))
        jobs.extend(order.begin(executor.slots))
        if on_trial is not None and told != len(order.done):
            on_trial(told := len(order.done), order.best)
    return order.found()


def _gain(metric: str, done: Finished) -> float:
    return METRICS[metric].gain(done.fitted.measure(done.masks["val"])[metric])


@dataclass
class _Open:
    """A trial that is not finished, and the gain of each run."""

    trial: optuna.Trial
    options: dict[str, Any]
    method: Method
    gains: list[float] = field(default_factory=list)

    @property
    def means(self) -> list[float]:
        return [fmean(self.gains[: run + 1]) for run in range(len(self.gains))]


class _Trials:
    """Decides what to train next in a search, and keeps what comes of it."""

    def __init__(self, wanted: Search, trials: int, end: float) -> None:
        self._wanted, self._trials, self._end = wanted, trials, end
        self._results = Results(wanted.storage, _parse)
        self._results.append()  # it is better to know now whether that is possible
        self.done = wanted.finished()
        self._study = Study(wanted.space, wanted.first, seed=wanted.seed, known=self.done, startup=_STARTUP_TRIALS)
        self._open: dict[str, _Open] = {}
        self._failed: list[str] = []

    @property
    def _complete(self) -> list[Trial]:
        return [trial for trial in self.done if trial.is_complete]

    @property
    def best(self) -> float | None:
        """The best value of the metric so far."""
        gain = METRICS[self._wanted.metric].gain
        return gain(max(trial.gains[-1] for trial in self._complete)) if self._complete else None

    def begin(self, slots: int) -> Iterator[Job]:
        """New trials, as long as so many are under way."""
        failed, combinations = len(self._failed), self._wanted.combinations
        wanted = (
            min(self._trials - len(self.done), combinations - len(self.done) - failed) if failed < self._trials else 0
        )
        while len(self._open) < min(slots, wanted) and time.monotonic() < self._end:
            trial, options = self._study.ask()
            number = str(trial.number)
            self._open[number] = _Open(trial, options, self._wanted.method.with_options(**options))
            yield self._job(number)

    def go_on(self, job: Job, result: float | Failed | WorkerLost) -> Iterator[Job]:
        """Count a run; gives the trial's next one, unless it has ended."""
        one, wanted = self._open[job.name], self._wanted
        if isinstance(result, Failed) and isinstance(result.error, TrainingDiverged):
            result = math.nan
        if isinstance(result, Failed) and result.why != "not enough memory" and not self.done:
            raise result.error  # it would happen to all
        if isinstance(result, Failed | WorkerLost):
            self._failed.append(result.why if isinstance(result, Failed) else str(result))
            self._study.tell(self._open.pop(job.name).trial, None)
            return
        worst = 0.0 if METRICS[wanted.metric].greater_is_better else _WORST_LOSS
        one.gains.append(worst if math.isnan(result) else result)
        one.trial.report(one.means[-1], job.run)
        is_behind, is_complete = one.trial.should_prune(), len(one.gains) == wanted.runs
        if not is_behind and not is_complete:
            yield self._job(job.name)
            return
        self._study.tell(one.trial, one.means[-1]) if is_complete else self._study.give_up(one.trial)
        self.done.append(Trial(one.options, one.means, is_complete))
        self._results.append({"search": wanted.identity} | self.done[-1]._asdict())
        del self._open[job.name]

    def _job(self, number: str) -> Job:
        one, wanted = self._open[number], self._wanted
        run = len(one.gains)
        split = run % split_count(wanted.data)
        return Job(name=number, run=run, method=one.method, split=split, seed=wanted.seed + run)

    def found(self) -> SearchResult:
        """The best so far."""
        if self.best is None:
            why = f" ({self._failed[-1]})" if self._failed else ""
            raise InputError(f"no trial was finished{why}: allow more time, or a device with more memory")
        wanted, complete = self._wanted, self._complete
        gain, own = METRICS[wanted.metric].gain, wanted.searched(wanted.method)
        best = max(complete, key=lambda trial: trial.gains[-1])
        start = next((gain(trial.gains[-1]) for trial in complete if trial.options == own), None)
        return SearchResult(best.options, self.best, start, len(self.done))


def _parse(record: Record) -> tuple[str, Trial]:
    return record["search"], Trial(dict(record["options"]), [*map(float, record["gains"])], record["is_complete"])
