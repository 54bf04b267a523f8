"""Trials that an executor judges: Optuna is asked for settings here, and told what came of them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import optuna
from optuna.trial import TrialState

from gcnsl.runs.executor import Executor, WorkerLost

DONE = (TrialState.COMPLETE, TrialState.PRUNED)
FAILED = (TrialState.FAIL,)
PATIENT_TRIALS = 5
"""No trial is given up before so many are complete."""


class Asked(NamedTuple):
    """A trial for a worker: its number, the settings, and for each run the median of the trials before it."""

    number: int
    options: dict[str, Any]
    medians: tuple[float, ...]

    def falls_behind(self, means: Sequence[float]) -> bool:
        """Whether to give up after these runs, of which each has the mean up to it: Optuna's ``MedianPruner``."""
        return max(means) < self.medians[len(means) - 1]


def share_trials(
    study: optuna.Study,
    executor: Executor,
    judge: Callable[[Asked], list[float] | None],
    suggest: Callable[[optuna.Trial], dict[str, Any]],
    *,
    runs: int,
    trials: int,
    combinations: float = math.inf,
    seconds: float | None = None,
) -> None:
    """Let an executor judge trials until there are so many, as many at once as it has workers.

    Args:
        judge: Gives the mean gain after each run, fewer than ``runs`` if it was given up; ``None`` if it needs too much
            memory. It must be picklable.
        suggest: The settings of a new trial.
        runs: By how many a trial is judged.
        trials: How many trials there should be, those of earlier searches counted.
        combinations: How many different trials there can be.
        seconds: Begin no trial after so many seconds.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    items: deque[Asked] = deque()
    under_way: dict[int, optuna.Trial] = {}

    def ask() -> None:
        done, failed = count(study, DONE), count(study, FAILED)
        room = min(trials - done, combinations - done - failed) if failed < trials else 0
        while len(under_way) < min(room, executor.slots) and time.monotonic() < end:
            trial = study.ask()
            under_way[trial.number] = trial
            items.append(Asked(trial.number, suggest(trial), _medians(study, runs)))

    ask()
    for asked, means in executor.each(judge, items):
        _tell(study, under_way.pop(asked.number), None if isinstance(means, WorkerLost) else means, runs)
        ask()


def count(study: optuna.Study, states: Sequence[TrialState]) -> int:
    """The number of trials in these states."""
    return len(study.get_trials(deepcopy=False, states=tuple(states)))


def _tell(study: optuna.Study, trial: optuna.Trial, means: Sequence[float] | None, runs: int) -> None:
    for run, mean in enumerate(means or ()):
        trial.report(mean, run)
    if not means:
        study.tell(trial, state=TrialState.FAIL)
    elif len(means) < runs:
        study.tell(trial, state=TrialState.PRUNED)
    else:
        study.tell(trial, means[-1])


def _medians(study: optuna.Study, runs: int) -> tuple[float, ...]:
    """For each run, the median of the complete trials' means up to it; -inf as long as these are few."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    complete = [trial.intermediate_values for trial in trials]
    if len(complete) < PATIENT_TRIALS:
        return (-math.inf,) * runs
    return tuple(median([means[run] for means in complete if run in means] or [-math.inf]) for run in range(runs))
