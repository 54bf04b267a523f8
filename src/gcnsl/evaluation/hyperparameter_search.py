"""Hyper-parameters found by Optuna, judged by a metric on validation nodes alone: test nodes are not looked at.

A trial trains on one split after the other and is given up when it falls behind the median of the trials before it.
Finished trials are in an SQLite file, so that a search continues where it was interrupted or killed. Workers judge
trials, but only the process that searches writes the file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import optuna
import torch
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED, check_choice, check_flag, check_number, check_seed, check_whole
from gcnsl.errors import InputError, TrainingDiverged, WriteError
from gcnsl.evaluation.ask_and_tell import DONE, FAILED, PATIENT_TRIALS, Asked, count, share_trials
from gcnsl.evaluation.outcome import Preparations, run_split
from gcnsl.files import writing
from gcnsl.graph import split_count, split_masks
from gcnsl.identity import identity
from gcnsl.methods import Method, Prepared, find_method
from gcnsl.methods.registry import combinations, space_of, starts_of
from gcnsl.nn.config import Folder
from gcnsl.options import Search as SearchRange
from gcnsl.training import METRICS, Epoch, choose_device
from gcnsl.workers.executor import Executor, check_wanted
from gcnsl.workers.processes import watching

_STARTUP_TRIALS = 10
_FEW = 32
"""If there are no more combinations than this, all of them are tried, each once."""
_POLL_SECONDS, _WAIT_SECONDS = 1.0, 600
_WORST_LOSS = -100.0


class _Grid(optuna.samplers.GridSampler):
    """A grid that can be asked and told.

    After the last combination, Optuna's calls ``Study.stop``, which is an error unless ``Study.optimize`` is running.
    """

    def after_trial(self, *trial: Any) -> None:
        with suppress(RuntimeError):
            super().after_trial(*trial)


@dataclass(frozen=True)
class Search:
    """What to search for.

    Args:
        method: The method with the options to begin with; those that are not searched for stay as they are.
        data: A graph with labels and masks (n × runs).
        name: What the search is called in its file, together with the method.
        runs: Number of splits that a trial is judged by; if there are fewer, they are used again with other seeds.
        metric: What a trial is judged by, a name of :data:`gcnsl.training.METRICS`.
        seed: Of the search, of anchors and of weights.
        storage: The SQLite file of trials.
        candidates: Further options to try before others, by name.
        grid: Whether to try all combinations of the few values in the method's literature, and no others.
        fixed: Options that are not searched for.
        root: A folder with dataset files, searched first.
    """

    method: Method
    data: Data
    name: str
    runs: int = 5
    metric: str = "accuracy"
    seed: int = 42
    device: str = "auto"
    storage: str | os.PathLike[str] = "search.db"
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

    @property
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

    def study(self) -> optuna.Study:
        """The trials so far; the sampler's seed moves on with them, lest a resumed search repeat itself."""
        with writing(Path(self.storage)):
            Path(self.storage).parent.mkdir(parents=True, exist_ok=True)
        patient = {"connect_args": {"timeout": _WAIT_SECONDS}}
        study = optuna.create_study(
            study_name=f"{self.method.name} on {self.name}, {self.metric}, {self.runs} runs, {self.identity[:16]}",
            storage=RDBStorage(f"sqlite:///{self.storage}", engine_kwargs=patient),
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=PATIENT_TRIALS),
        )
        if self.combinations < math.inf:  # the sampler numbers combinations by the seed, so the seed has to stay
            values = {name: suggest.values or () for name, suggest in self.space.items()}
            study.sampler = _Grid(values, seed=self.seed)
        else:
            seed = self.seed + len(study.get_trials(deepcopy=False))
            study.sampler = optuna.samplers.TPESampler(n_startup_trials=_STARTUP_TRIALS, seed=seed)
        return study

    def gain(self, value: float) -> float:
        """From the metric to what is maximised, and back."""
        return METRICS[self.metric].gain(value)

    @property
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


class Found(NamedTuple):
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
    on_epoch: Callable[[int, Epoch], None] | None = None,
) -> Found:
    """Search until there are so many trials, those of earlier calls and those given up counted, and return the best.

    Args:
        wanted: What to search for.
        trials: How many trials there should be in the end; at most all combinations, where there are few.
        seconds: Start no trial after so many seconds.
        executor: Who judges the trials, if not this process.
        on_trial: Called with the number of trials and the best value of the metric so far: at once, and in another
            thread after each trial.
        on_epoch: Called after each epoch with the number of the run in its trial; only if there is no executor.
    """
    check_whole("trials", trials, least=1)
    if seconds is not None:
        check_number("seconds", seconds, above=0)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with _named(wanted.storage):
        study, told = wanted.study(), -1
        trials = int(min(trials, wanted.combinations))
        if wanted.combinations == math.inf:
            _enqueue_first(study, wanted)

        def complete() -> list[optuna.trial.FrozenTrial]:
            return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))

        def look() -> None:
            nonlocal told
            if on_trial is not None and count(study, DONE) != told:
                told = count(study, DONE)
                best = max((trial.value for trial in complete() if trial.value is not None), default=None)
                on_trial(told, None if best is None else wanted.gain(best))

        look()
        with watching(look, every=_POLL_SECONDS) if on_trial else nullcontext():
            if count(study, DONE) < trials and executor is None:
                enough = [optuna.study.MaxTrialsCallback(trials, states=states) for states in (DONE, FAILED)]
                judge = partial(_judge_here, wanted=wanted, on_epoch=on_epoch)
                study.optimize(judge, timeout=seconds, callbacks=enough, catch=torch.OutOfMemoryError)
            elif executor is not None:
                suggest, known = partial(_suggest, wanted=wanted), wanted.combinations
                limits: dict[str, Any] = {"trials": trials, "combinations": known, "seconds": seconds}
                share_trials(study, executor, partial(_judge_there, wanted=wanted), suggest, runs=wanted.runs, **limits)
        if not complete():
            raise InputError(
                f"no trial was finished: allow more time than seconds({seconds}), or a device with more memory"
            )
        best, start = study.best_trial, _start(wanted, complete())
        return Found(best.user_attrs["options"], wanted.gain(float(best.value or 0.0)), start, count(study, DONE))


@contextmanager
def _named(storage: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file of trials if it can't be used."""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError, WriteError) as error:
        reason = getattr(error.__cause__ or error, "orig", None) or error
        raise InputError(
            f"{storage} can't be used for trials ({reason}): free the disk or end the program that uses it, or give "
            "another file"
        ) from error


def _start(wanted: Search, complete: Sequence[optuna.trial.FrozenTrial]) -> float | None:
    """The metric of the method as it was given."""
    options = wanted.method.options()
    own = {name: options[name] for name in wanted.space}
    values = (wanted.gain(trial.value or 0.0) for trial in complete if trial.user_attrs["options"] == own)
    return next(values, None)


def _enqueue_first(study: optuna.Study, wanted: Search) -> None:
    """Queue what is to be tried first, unless it is queued or done; a trial that was killed is tried again."""
    known = study.get_trials(deepcopy=False, states=(*DONE, TrialState.WAITING))
    tried = [trial.system_attrs.get("fixed_params") for trial in known]
    base, general = wanted.method, find_method(wanted.method.name)
    candidates = [base.with_options(**options) for options in wanted.candidates]
    starts = [
        base.with_options(**{name: value for name, value in start.items() if name in wanted.space})
        for start in starts_of(base.name)
    ]
    for method in (base, *candidates, general, *starts):
        options = method.options()
        first = {  # a value that can't be suggested is left to the sampler
            name: options[name]
            for name, suggest in wanted.space.items()
            if suggest.values is None or options[name] in suggest.values
        }
        if first not in tried:
            study.enqueue_trial(first)
            tried.append(first)


def _suggest(trial: optuna.Trial, wanted: Search) -> dict[str, Any]:
    """The settings of a new trial."""
    options = {name: suggest(trial, name) for name, suggest in wanted.space.items()}
    trial.set_user_attr("options", options)
    return options


def _judge_here(trial: optuna.Trial, wanted: Search, on_epoch: Callable[[int, Epoch], None] | None) -> float:
    """Judge a trial in this process."""

    def falls_behind(means: Sequence[float]) -> bool:
        trial.report(means[-1], len(means) - 1)
        return trial.should_prune()

    means = _judge(_suggest(trial, wanted), wanted, falls_behind, on_epoch)
    if len(means) < wanted.runs:
        raise optuna.TrialPruned
    return means[-1]


def _judge_there(asked: Asked, wanted: Search) -> list[float] | None:
    """Judge a trial in a worker; ``None`` if that needs too much memory."""
    try:
        return _judge(asked.options, wanted, asked.falls_behind, check_wanted)
    except torch.OutOfMemoryError:
        return None


def _judge(
    options: Mapping[str, Any],
    wanted: Search,
    falls_behind: Callable[[Sequence[float]], bool],
    on_epoch: Callable[[int, Epoch], None] | None,
) -> list[float]:
    """Mean gain after each run: the metric on validation nodes, with the sign that makes more better."""
    method, device = wanted.method.with_options(**options), choose_device(wanted.device)
    prepared = Preparations(method, wanted.data, seed=wanted.seed, device=device, root=wanted.root)
    splits = split_count(wanted.data)
    gains: list[float] = []
    means: list[float] = []
    for run in range(wanted.runs):
        told, split = on_epoch and partial(on_epoch, run), run % splits
        where = {"run": split, "seed": wanted.seed + run}
        gains.append(_validation_gain(prepared.on(split), metric=wanted.metric, on_epoch=told, **where))
        means.append(fmean(gains))
        if falls_behind(means):
            break
    return means


def _validation_gain(
    prepared: Prepared, *, metric: str, run: int, seed: int, on_epoch: Callable[[Epoch], None] | None
) -> float:
    """What one run gains; the worst if it diverges or the metric is not defined."""
    worst = 0.0 if METRICS[metric].greater_is_better else _WORST_LOSS
    try:
        outcome = run_split(prepared, run=run, seed=seed, on_epoch=on_epoch)
    except TrainingDiverged:
        return worst
    value = METRICS[metric].gain(outcome.fitted.measure(outcome.masks["val"])[metric])
    return worst if math.isnan(value) else value
