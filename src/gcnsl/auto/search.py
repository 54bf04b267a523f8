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
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import fmean
from typing import Any, NamedTuple

import optuna
import torch
from torch_geometric.data import Data

from gcnsl.auto.proposals import new_study, suggested
from gcnsl.auto.race import Contender, Race
from gcnsl.checks import UNLABELLED, check_choice, check_number, check_seed, check_whole
from gcnsl.errors import InputError, TrainingDiverged
from gcnsl.graph import split_count, split_masks
from gcnsl.methods import Method, find_method
from gcnsl.methods.registry import combinations, space_of, starts_of
from gcnsl.nn.config import Folder
from gcnsl.options import Search as SearchRange
from gcnsl.runs.executor import HERE, Executor, WorkerLost
from gcnsl.runs.jobs import Failed, Finished, Job, Trainer, identity
from gcnsl.runs.results import Record, append_records, read_records
from gcnsl.training import METRICS, choose_device

_STARTUP_TRIALS = 10
_FEW = 32
"""If there are no more combinations than this, all of them are tried, each once."""
_WORST_LOSS = -100.0


@dataclass(frozen=True)
class Search:
    """What to search for."""

    method: Method
    """With the options to begin with; those that are not searched for stay as they are."""
    data: Data
    """A graph with labels and masks (n × splits)."""
    runs: int = 5
    """Number of splits that a trial is judged by; if there are fewer, they are used again with other seeds."""
    metric: str = "accuracy"
    seed: int = 42
    device: str = "auto"
    storage: str | os.PathLike[str] = "search.jsonl"
    """The file of trials, in which searches for other things may be, too."""
    fixed: Collection[str] = ()
    """Options that are not searched for."""
    root: Folder = None

    def __post_init__(self) -> None:
        check_whole("runs", self.runs, least=1)
        check_seed(self.seed)
        check_choice("metric", self.metric, METRICS)
        split_masks(self.data, 0)
        choose_device(self.device)

    @cached_property
    def space(self) -> dict[str, SearchRange]:
        """What is searched for."""
        fixed = self.fixed if self.metric == "accuracy" else {*self.fixed, "monitor"}  # it is the metric then
        return {name: suggest for name, suggest in space_of(self.method.name).items() if name not in fixed}

    @property
    def combinations(self) -> float:
        """How many different trials there can be; infinite if the space is not searched exhaustively."""
        count = combinations(self.space)
        return count if count <= _FEW else math.inf

    @property
    def first(self) -> list[dict[str, Any]]:
        """What is tried before all else: the method as it is, what is known to be good, or all there is."""
        if self.combinations < math.inf:
            values = (suggest.values or () for suggest in self.space.values())
            return [dict(zip(self.space, chosen, strict=True)) for chosen in itertools.product(*values)]
        starts = ({name: start[name] for name in start if name in self.space} for start in starts_of(self.method.name))
        methods = (
            self.method,
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
        return [trial for search, trial in read_records(self.storage, _parse) if search == self.identity]

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
            metric=self.metric,
            runs=self.runs,
            seed=self.seed,
        )


class Trial(NamedTuple):
    """A trial that is finished."""

    options: dict[str, Any]
    """What was searched for."""
    gains: list[float]
    """After each run, the mean of the metric until then, with the sign that makes more better."""
    is_complete: bool
    """Whether it has all runs; otherwise it fell behind."""


class SearchResult(NamedTuple):
    """The best of a search."""

    options: dict[str, Any]
    """What was searched for."""
    score: float
    """Mean of the metric on validation nodes."""
    start: float | None
    """The same of the method as it was given; ``None`` if there is no complete trial of it."""
    trials: int
    """Number of trials so far."""


def search(
    wanted: Search,
    *,
    trials: int,
    seconds: float | None = None,
    executor: Executor = HERE,
    on_trial: Callable[[int, float | None], None] = lambda *_: None,
) -> SearchResult:
    """Search until there are so many trials, those of earlier calls and those given up counted, and return the best.

    No trial is started after so many seconds, or if all combinations were tried. ``on_trial`` is called at once, and
    after each trial, with the number of trials and the best value of the metric.
    """
    check_whole("trials", trials, least=1)
    began, until = time.monotonic(), math.inf if seconds is None else check_number("seconds", seconds, above=0)
    race = _Trials(wanted, trials, until, on_trial)
    where: dict[str, Any] = {"seed": wanted.seed, "device": wanted.device, "root": wanted.root}
    trainer = Trainer(wanted.data, partial(_gain, wanted.metric), **where)
    race.run(executor, trainer, lambda: time.monotonic() - began)
    return race.found()


def _gain(metric: str, done: Finished) -> float:
    return METRICS[metric].gain(done.fitted.measure(done.masks["val"])[metric])


class _Trials(Race):
    """The race of a search: contenders are trials, by their number, and their fits are gains of the metric.

    A trial goes on unless Optuna says that it has fallen behind the median of those before it.
    """

    def __init__(
        self, wanted: Search, trials: int, until: float, on_trial: Callable[[int, float | None], None]
    ) -> None:
        super().__init__(wanted.runs)
        self._wanted, self._until, self._most, self._tell = wanted, until, min(trials, wanted.combinations), on_trial
        self._done, self._failed = wanted.finished(), list[str]()
        append_records(wanted.storage)  # it is better to know now whether that is possible
        self._study = new_study(wanted.space, wanted.first, seed=wanted.seed, known=self._done, startup=_STARTUP_TRIALS)
        self._tell(len(self._done), self._best)

    @property
    def _complete(self) -> list[Trial]:
        return [trial for trial in self._done if trial.is_complete]

    @property
    def _best(self) -> float | None:
        """The best value of the metric so far."""
        gain = METRICS[self._wanted.metric].gain
        return gain(max(trial.gains[-1] for trial in self._complete)) if self._complete else None

    def merit(self, contender: Contender, level: int) -> float:
        """The mean of the gains of its first runs."""
        return fmean(contender.fits[:level])

    def next_job(self, elapsed: float) -> Job | None:
        """The next run of a trial or, before the time is over, the first of a new one."""
        wanted, contender = self._wanted, self._promotable() or self._new(elapsed)
        if contender is None:
            return None
        run, contender.is_running = contender.level, True
        method, split = wanted.method.with_options(**contender.candidate), run % split_count(wanted.data)
        assert contender.trial is not None
        return Job(name=str(contender.trial.number), run=run, method=method, split=split, seed=wanted.seed + run)

    def _new(self, elapsed: float) -> Contender | None:
        begun, failed = len(self._done) + len(self.contenders), len(self._failed)
        most = min(self._most, self._wanted.combinations - failed) if failed < self._most else 0
        if begun >= most or elapsed >= self._until:
            return None
        trial = self._study.ask()
        return self.contenders.setdefault(trial.number, Contender(suggested(trial, self._wanted.space), trial))

    def count(self, job: Job, result: float | Failed | WorkerLost, elapsed: float) -> None:
        """Count a run; its trial goes on, is complete, or is given up."""
        contender, metric = self.contenders[int(job.name)], METRICS[self._wanted.metric]
        contender.is_running = False
        if isinstance(result, Failed) and isinstance(result.error, TrainingDiverged):
            result = math.nan
        if isinstance(result, Failed) and result.why != "not enough memory" and not self._done:
            raise result.error  # it would happen to all
        if isinstance(result, Failed | WorkerLost):
            self._failed.append(result.why if isinstance(result, Failed) else str(result))
            contender.tell(None)
            del self.contenders[int(job.name)]
            return
        worst, trial = 0.0 if metric.greater_is_better else _WORST_LOSS, contender.trial
        contender.fits.append(worst if math.isnan(result) else result)
        means = [self.merit(contender, level) for level in range(1, contender.level + 1)]
        is_complete = contender.level == self.folds
        if not is_complete:
            assert trial is not None
            trial.report(means[-1], contender.level - 1)
            if not trial.should_prune():
                return
        contender.tell(means[-1] if is_complete else None, otherwise=optuna.trial.TrialState.PRUNED)
        self._done.append(Trial(contender.candidate, means, is_complete))
        append_records(self._wanted.storage, {"search": self._wanted.identity} | self._done[-1]._asdict())
        del self.contenders[int(job.name)]
        self._tell(len(self._done), self._best)

    def found(self) -> SearchResult:
        """The best so far."""
        if self._best is None:
            why = f" ({self._failed[-1]})" if self._failed else ""
            raise InputError(f"no trial was finished{why}: allow more time, or a device with more memory")
        best, own = max(self._complete, key=lambda trial: trial.gains[-1]), self._wanted.searched(self._wanted.method)
        start = next((trial.gains[-1] for trial in self._complete if trial.options == own), None)
        gain = METRICS[self._wanted.metric].gain
        return SearchResult(best.options, self._best, None if start is None else gain(start), len(self._done))


def _parse(record: Record) -> tuple[str, Trial]:
    return record["search"], Trial(dict(record["options"]), [*map(float, record["gains"])], record["is_complete"])
