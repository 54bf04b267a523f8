"""The whole procedure: a race within a time budget, and the ensemble of the best."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import cpu_count
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AutoSettings
from gcnsl.auto.candidates import FoldJob, Problem, portfolio
from gcnsl.auto.ensemble import Blend, Member, OutOfFold, best_temperature, leading, log_probabilities, tempered
from gcnsl.auto.journal import Journal, SavedModels, fold_trainer
from gcnsl.auto.leaderboard import ENSEMBLE, MAJORITY, leaderboard, majority_probabilities
from gcnsl.auto.race import Contender, TimedRace
from gcnsl.errors import InputError, Interrupted
from gcnsl.execution import Interruption
from gcnsl.runs.executor import HERE, Executor
from gcnsl.runs.jobs import reason
from gcnsl.runs.processes import Processes
from gcnsl.training import History, choose_device
from gcnsl.training.metrics import Floats

STARTING_PAYS = 15.0
"""With fewer seconds in all, this process trains by itself: others would have hardly started."""
_LOGGER = logging.getLogger("gcnsl")


@dataclass(frozen=True)
class Progress:
    """How far a selection is."""

    seconds: float
    seconds_left: float
    fits: int
    """Number of finished models."""
    now: list[str]
    """Names of what is being trained."""
    best: str | None
    """The best contender so far; ``None`` before the first."""
    score: float
    """Its value of the metric on the validation nodes of the first fold."""
    metric: str


class ChosenBy(NamedTuple):
    """What contenders are compared by in the end; as a string, in words."""

    metric: str
    nodes: int
    of: int
    """The number of all nodes that are learned from."""
    first_fold: int
    """The number of nodes of the first fold, which are among those that decide."""
    kept: bool
    """Whether these are validation nodes that no model learns from."""

    def __str__(self) -> str:
        if self.kept:
            return f"{self.metric} on {self.nodes:,} validation nodes, which no model has learned from"
        some = f"{self.nodes:,} of {self.of:,}" if self.nodes < self.of else f"all {self.of:,}"
        nodes = f"{some} training and validation nodes"
        return f"{self.metric} on {nodes}, each predicted by models that had not learned from it"


@dataclass(frozen=True)
class Selected:
    """What came of a selection."""

    blend: Blend
    """The ensemble, possibly of a single member."""
    leaderboard: pd.DataFrame
    """All that was tried, without test scores."""
    probabilities: dict[str, Floats]
    """Of all nodes (n × C), by the names in the leaderboard."""
    chosen_by: ChosenBy
    of_first_fold: Floats
    """The ensemble of the members' models of the first fold alone, which have not learned from its nodes (n × C)."""


def select(
    problem: Problem,
    settings: AutoSettings,
    graph: Data,
    *,
    minutes: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Selected:
    """Find the best ensemble within a time budget.

    Args:
        problem: What is to be learned.
        settings: How.
        graph: The problem's graph with all that predictions need, such as node ids.
        minutes: Time budget; ``None`` for that of the quality. One model is always made.
        checkpoint: Folder for finished models, from which the same selection goes on. ``None`` for none.
        executor: Who trains the models; ``None`` for processes of this machine.
        on_progress: Called now and then.

    Raises:
        Interrupted: On Ctrl-C or SIGTERM; ``so_far`` is what the finished models make, ``None`` if there is none.
    """
    seconds = 60 * (settings.effort.minutes if minutes is None else minutes)
    journal = Journal(None if checkpoint is None else Path(checkpoint), problem.identity)
    fits = journal.read()
    began = monotonic() - max((fit.elapsed for fit in fits), default=0.0)
    with ExitStack() as opened:
        interruption = opened.enter_context(Interruption())
        executor = executor or opened.enter_context(_own_executor(problem, settings, seconds))
        how: dict[str, Any] = {"trials": settings.effort.trials, "seconds": seconds, "processes": executor.slots}
        race = TimedRace(problem, portfolio(problem.graph), **how, fits=fits, journal=journal)

        def tell(elapsed: float, running: list[FoldJob]) -> None:
            if on_progress is None:
                return
            ranking, now = race.ranking(), [job.candidate.name for job in running]
            best = ranking[0].candidate.name if ranking else None
            score = race.value(ranking[0], 1) if ranking else math.nan
            left = max(0.0, race.seconds - elapsed)
            on_progress(Progress(elapsed, left, race.fits, now, best, score, problem.metric))

        def chosen(stopped: str) -> Selected:
            history = History(seconds=monotonic() - began, stopped=stopped)
            return choose(race, journal, graph, history, single=settings.single)

        try:
            stopped = race.run(executor, fold_trainer(problem), lambda: monotonic() - began, tell)
            with interruption.whole():
                return chosen(stopped)
        except KeyboardInterrupt:
            interruption.ignore_further()
            so_far = chosen("interrupted") if race.fits else None
            when = f"after {race.fits} models" if race.fits else "before a model was finished"
            raise Interrupted(f"interrupted {when}", so_far) from None


def _own_executor(problem: Problem, settings: AutoSettings, seconds: float) -> Executor:
    """One process on each core, or one in all for a GPU."""
    if seconds < STARTING_PAYS:
        return HERE
    on_cpu = choose_device(problem.device).type == "cpu"
    return Processes(settings.processes or (cpu_count() if on_cpu else 1))


def choose(race: TimedRace, journal: Journal, graph: Data, history: History, *, single: bool) -> Selected:
    """The best ensemble of what is finished; contenders whose models can't be restored are left out.

    With ``single``, it is one model of one contender. ``journal`` has the models, and ``history`` says how long the
    race took and why it ended.
    """
    if not race.ranking():
        failures = {c.candidate.name: c.failure for c in race.contenders.values() if c.failure}
        told = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise InputError(f"no model could be trained on this graph, look at it with `gcnsl inspect` ({told})")
    problem, level, y = race.problem, race.level, race.truth(race.level)
    pool, (weights, held_out) = race.weighed()
    if single:
        weights, held_out = np.ones(1), race.out_of_fold(pool[0], level)
    order = np.argsort(-weights, kind="stable")
    chosen = {pool[number]: float(weights[number]) for number in order if weights[number] > 0}
    members: list[Member] = []
    for contender, weight in chosen.items():
        folds = range(1 if single else contender.level)
        try:
            saved = [journal.model(contender.candidate, fold) for fold in folds]
            fits = SavedModels(saved, graph, choose_device(problem.device))
            assert members or fits[0]  # the first is restored at once, others when they are needed
        except Exception as error:
            _LOGGER.debug("%s can't be restored", contender.candidate.name, exc_info=True)
            race.lose(contender, f"failed: it can't be restored ({reason(error)})")
            return choose(race, journal, graph, history, single=single)
        members.append(Member(contender.candidate.name, weight, race.temperature(contender, level), fits))

    def together(predicted: Callable[[Contender], Floats]) -> Floats:
        """The ensemble of what the chosen ones predict (n × C)."""
        tempers = (tempered(predicted(each), race.temperature(each, level)) for each in chosen)
        mean: Floats = np.sum([weight * part for weight, part in zip(chosen.values(), tempers, strict=True)], axis=0)
        return mean

    temperature = best_temperature(held_out, y)
    held_out = tempered(held_out, temperature)
    probabilities: dict[str, Floats] = {MAJORITY: majority_probabilities(problem, graph.num_nodes)}
    probabilities |= {c.candidate.name: race.probabilities(c, level) for c in race.contenders.values() if c.fits}
    if single:
        probabilities[pool[0].candidate.name] = pool[0].fits[0].probabilities  # of the model that is kept
    probabilities[ENSEMBLE] = tempered(together(Contender.probabilities), temperature)
    known, nodes = None if single else log_probabilities(probabilities[ENSEMBLE]), problem.validated(level)
    judged = OutOfFold(nodes.nonzero().flatten(), torch.from_numpy(held_out).float(), problem.fold[nodes])
    return Selected(
        Blend(tuple(members), history, graph, temperature, known, judged),
        leaderboard(race, level, chosen, held_out),
        probabilities,
        chosen_by(race),
        together(lambda contender: contender.fits[0].probabilities),
    )


def chosen_by(race: TimedRace) -> ChosenBy:
    """By what the contenders of a race are compared."""
    learned, validated = (int(nodes.sum()) for nodes in (race.problem.learned, race.problem.validated(race.level)))
    first_fold = int(race.problem.validated(1).sum())
    return ChosenBy(leading(race.problem.metric, validated), validated, learned, first_fold, race.problem.folds == 1)
