"""The whole procedure: a race within a time budget, the ensemble of the best, and a table of all that was tried."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import cpu_count
from torch_geometric.data import Data

from gcnsl.auto.auto_settings import AutoSettings
from gcnsl.auto.blend import Blend, Member, OutOfFold, SavedModels, log_probabilities
from gcnsl.auto.candidates import portfolio
from gcnsl.auto.ensemble import best_temperature, tempered, weigh_models
from gcnsl.auto.journal import FoldJob, Journal, fold_trainer
from gcnsl.auto.leaderboard import ENSEMBLE, MAJORITY, leaderboard, majority_probabilities
from gcnsl.auto.learning_problem import Problem
from gcnsl.auto.race import Contender, Race
from gcnsl.errors import InputError, Interrupted
from gcnsl.execution import Interruption
from gcnsl.runs.executor import Crew, Executor, ThisProcess, TooSlow, WorkerLost
from gcnsl.runs.jobs import Failed, reason
from gcnsl.runs.processes import Processes
from gcnsl.training import History, choose_device
from gcnsl.training.metrics import Floats

STARTING_PAYS = 15.0
"""With fewer seconds in all, this process trains by itself: others would have hardly started."""
POLL_SECONDS = 0.5
LEAST_POOL, LARGEST_POOL = 3, 15
"""At least three contenders should be compared; more than 15 are not looked at."""
ENOUGH_NODES = 1000
_LOGGER = logging.getLogger("gcnsl")


@dataclass(frozen=True)
class Progress:
    """How far a selection is.

    Attributes:
        seconds, seconds_left: Since its beginning, and until its end.
        fits: Number of finished models.
        now: Names of what is being trained.
        best: The best contender so far; ``None`` before the first.
        score: Its value of the metric on the validation nodes of the first fold.
        metric: What contenders are compared by.
    """

    seconds: float
    seconds_left: float
    fits: int
    now: list[str]
    best: str | None
    score: float
    metric: str


class ChosenBy(NamedTuple):
    """What contenders are compared by in the end; as a string, in words.

    Attributes:
        metric: The one that decides.
        nodes: The number of nodes.
        of: The number of all that are learned from.
        first_fold: The number of nodes of the first fold, which are among them.
        kept: Whether these are validation nodes that no model learns from.
    """

    metric: str
    nodes: int
    of: int
    first_fold: int
    kept: bool

    def __str__(self) -> str:
        if self.kept:
            return f"{self.metric} on {self.nodes:,} validation nodes, which no model has learned from"
        some = f"{self.nodes:,} of {self.of:,}" if self.nodes < self.of else f"all {self.of:,}"
        nodes = f"{some} training and validation nodes"
        return f"{self.metric} on {nodes}, each predicted by models that had not learned from it"


@dataclass(frozen=True)
class Selected:
    """What came of a selection.

    Attributes:
        blend: The ensemble, possibly of a single member.
        leaderboard: All that was tried, without test scores.
        probabilities: Of all nodes (n × C), by the names in the leaderboard.
        chosen_by: What they were compared by.
        of_first_fold: The ensemble of the members' models of the first fold alone, which have not learned from its
            nodes: probabilities of all nodes (n × C).
    """

    blend: Blend
    leaderboard: pd.DataFrame
    probabilities: dict[str, Floats]
    chosen_by: ChosenBy
    of_first_fold: Floats


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
    with ExitStack() as opened:
        journal = Journal(None if checkpoint is None else Path(checkpoint), problem.identity)
        journal.check_place()
        interruption = opened.enter_context(Interruption())
        executor = executor or opened.enter_context(_own_executor(problem, settings, seconds))
        selection = _Selection(problem, settings, journal, seconds, executor=executor, on_progress=on_progress)
        try:
            selection.run()
            with interruption.whole():
                return selection.choose(graph, "complete" if selection.is_complete else "minutes")
        except KeyboardInterrupt:
            interruption.ignore_further()
            so_far = selection.choose(graph, "interrupted") if selection.race.ranking() else None
            when = f"after {selection.fits} models" if selection.fits else "before a model was finished"
            raise Interrupted(f"interrupted {when}", so_far) from None


def _own_executor(problem: Problem, settings: AutoSettings, seconds: float) -> Executor:
    """One process on each core, or one in all for a GPU."""
    if seconds < STARTING_PAYS:
        return ThisProcess()
    on_cpu = choose_device(problem.device).type == "cpu"
    return Processes(settings.processes or (cpu_count() if on_cpu else 1))


class _Selection:
    def __init__(
        self,
        problem: Problem,
        settings: AutoSettings,
        journal: Journal,
        seconds: float,
        *,
        executor: Executor,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.problem, self._settings, self._journal, self._tell = problem, settings, journal, on_progress
        finished = journal.read()
        self._began = monotonic() - max((fit.elapsed for fit in finished), default=0.0)
        self._executor = executor
        self.race = Race(
            problem,
            portfolio(problem.graph),
            trials=settings.effort.trials,
            seconds=seconds,
            processes=executor.slots,
            fits=finished,
        )
        self.fits, self.is_complete = len(finished), False

    @property
    def elapsed(self) -> float:
        return monotonic() - self._began

    @property
    def _left(self) -> float:
        return self.race.seconds - self.elapsed

    def run(self) -> None:
        """Train until the time is over or nothing is left to do.

        As long as no worker has started, this process trains what is quick; that also tells how fast the machine is.
        """
        trainer = fold_trainer(self.problem)
        with Crew(self._executor, trainer) as crew:
            while self._left > 0 or not self.fits:
                if not self._executor.ready and (job := self.race.quick_job(self.elapsed)) is not None:
                    self._report([job])
                    self._count(job, trainer(job))
                    continue
                while crew.has_room and (job := self.race.next_job(self.elapsed)) is not None:
                    # One model is waited for, however long it takes, and it is no use to give one up that goes on.
                    waits = not self._executor.gives_up_at_once or (not self.fits and not crew.running)
                    crew.submit(job, seconds=math.inf if waits else job.limit)
                if not crew.running and crew.has_room:
                    self.is_complete = True
                    return
                self._report(crew.running)
                patience = min(POLL_SECONDS, max(0.0, self._left)) if self.fits else POLL_SECONDS
                for job, result in crew.wait(patience):
                    self._count(job, result)

    def _count(self, job: FoldJob, result: bytes | Failed | WorkerLost) -> None:
        """Count a model, or give its contender up: what happens to one of them does not end the selection."""
        if isinstance(result, TooSlow):
            has_fits = self.race.contenders[job.candidate].fits
            what = f"stopped: fold {job.run + 1} was" if has_fits else "skipped:"
            self.race.fail(job.candidate, f"{what} not finished within {job.limit:.0f} s")
        elif isinstance(result, WorkerLost):
            self.race.fail(job.candidate, f"failed: {result}")
        elif isinstance(result, Failed):
            _LOGGER.debug("%s, fold %d, has failed\n%s", job.candidate.name, job.run + 1, result.traceback)
            self.race.fail(job.candidate, f"failed: {result.why}")
        else:
            self._keep(job, result)

    def _keep(self, job: FoldJob, content: bytes) -> None:
        try:
            self.race.add(self._journal.write(content, job.candidate, job.run))
            self.fits += 1
        except Exception as error:
            _LOGGER.debug("%s, fold %d, can't be used", job.candidate.name, job.run + 1, exc_info=True)
            self.race.fail(job.candidate, f"failed: {reason(error)}")

    def _report(self, running: list[FoldJob]) -> None:
        if self._tell is None:
            return
        ranking, left = self.race.ranking(), max(0.0, self._left)
        best = ranking[0].candidate.name if ranking else None
        score = self.race.value(ranking[0], 1) if ranking else math.nan
        now = [job.candidate.name for job in running]
        self._tell(Progress(self.elapsed, left, self.fits, now, best, score, self.problem.metric))

    def choose(self, graph: Data, stopped: str) -> Selected:
        """The ensemble of what is finished, and the leaderboard."""
        history = History(seconds=self.elapsed, stopped=stopped)
        return choose(self.race, self._journal, graph, history, single=self._settings.single)


class _Part(NamedTuple):
    """A contender that is chosen."""

    contender: Contender
    weight: float
    temperature: float

    def of(self, probabilities: Floats) -> Floats:
        """Its part of the ensemble, where it predicts these probabilities (n × C)."""
        return self.weight * tempered(probabilities, self.temperature)


def choose(race: Race, journal: Journal, graph: Data, history: History, *, single: bool) -> Selected:
    """The best ensemble of what is finished; contenders whose models can't be restored are left out.

    Args:
        race: The contenders.
        journal: Where their models are.
        graph: The graph of the ensemble.
        history: How long the race took, and why it ended.
        single: Whether to choose one model of one contender.

    Raises:
        InputError: If there is none.
    """
    if not race.ranking():
        failures = {c.candidate.name: c.failure for c in race.contenders.values() if c.failure}
        told = "; ".join(f"{name}: {why}" for name, why in failures.items())
        raise InputError(f"no model could be trained on this graph, look at it with `gcnsl inspect` ({told})")
    problem, level = race.problem, _common_level(race)
    pool = race.ranking(level)[: 1 if single else LARGEST_POOL]
    nodes = problem.validated(level).nonzero().flatten()
    y, given = problem.graph.y[nodes].numpy(), np.stack([race.out_of_fold(contender, level) for contender in pool])
    weights, held_out = weigh_models(given, y, race.judge, seed=problem.seed)
    chosen = [number for number in np.argsort(-weights, kind="stable").tolist() if weights[number] > 0]
    parts = [_Part(pool[number], float(weights[number]), race.temperature(pool[number], level)) for number in chosen]
    members = [_restored(part, journal, graph, problem, first=part is parts[0], single=single) for part in parts]
    if not all(members):
        return choose(race, journal, graph, history, single=single)
    temperature = best_temperature(held_out, y)
    held_out = tempered(held_out, temperature)
    probabilities: dict[str, Floats] = {MAJORITY: majority_probabilities(problem, graph.num_nodes)}
    probabilities |= {c.candidate.name: race.probabilities(c, level) for c in race.contenders.values() if c.fits}
    if single:
        probabilities[pool[0].candidate.name] = pool[0].fits[0].probabilities  # of the model that is kept
    together = np.sum([part.of(part.contender.probabilities()) for part in parts], axis=0)
    probabilities[ENSEMBLE] = tempered(together, temperature)
    blend = Blend(
        tuple(member for member in members if member is not None),
        history,
        graph,
        temperature,
        None if single else log_probabilities(probabilities[ENSEMBLE]),
        OutOfFold(nodes, torch.from_numpy(held_out).float()),
    )
    return Selected(
        blend,
        leaderboard(race, level, {part.contender: part.weight for part in parts}, held_out),
        probabilities,
        _chosen_by(race, level),
        np.sum([part.of(part.contender.fits[0].probabilities) for part in parts], axis=0),
    )


def _restored(
    part: _Part, journal: Journal, graph: Data, problem: Problem, *, first: bool, single: bool
) -> Member | None:
    """A member of the ensemble; the first is restored at once, as others are when they are needed.

    ``None`` if its models can't be restored: then it is no contender any more.
    """
    contender = part.contender
    try:
        saved = [journal.model(contender.candidate, fold) for fold in range(1 if single else contender.level)]
        fits = SavedModels(saved, graph, choose_device(problem.device))
        assert not first or fits[0]
    except Exception as error:
        _LOGGER.debug("%s can't be restored", contender.candidate.name, exc_info=True)
        contender.fits, contender.failure = [], f"failed: it can't be restored ({reason(error)})"
        return None
    return Member(contender.candidate.name, part.weight, part.temperature, fits)


def _chosen_by(race: Race, level: int) -> ChosenBy:
    learned, validated = (int(nodes.sum()) for nodes in (race.problem.learned, race.problem.validated(level)))
    first_fold = int(race.problem.validated(1).sum())
    return ChosenBy(race.judge.leading(validated), validated, learned, first_fold, race.problem.folds == 1)


def _common_level(race: Race) -> int:
    """The number of folds that contenders are compared on; those that have completed fewer are left out.

    At least three contenders of the better half, as the first fold ranks them, have completed so many. If fewer folds
    have enough nodes, it is these, as more contenders are then worth more than more nodes.
    """
    ranking, problem = race.ranking(), race.problem
    better = ranking[: max(LEAST_POOL, len(ranking) // 2)]
    completed = sorted((contender.level for contender in better), reverse=True)[:LEAST_POOL][-1]
    few = (level for level in range(1, completed) if int(problem.validated(level).sum()) >= ENOUGH_NODES)
    return next(few, completed)
