"""The whole procedure: a race within a time budget, an ensemble of the best, and a table of all that was tried."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch_geometric.data import Data

from gcnsl.errors import InputError, Interrupted, TrainingDiverged
from gcnsl.selection.auto_settings import AutoSettings
from gcnsl.selection.candidates import portfolio
from gcnsl.selection.choice import Selected, choose
from gcnsl.selection.fold_fit import FoldFitter, FoldJob, call_fitter
from gcnsl.selection.journal import FoldFit, Journal
from gcnsl.selection.learning_problem import Problem
from gcnsl.selection.proposals import Proposals
from gcnsl.selection.race import Race
from gcnsl.training import History, choose_device
from gcnsl.training.interruption import Interruption
from gcnsl.workers.job_pool import JobPool, TooSlow

SAVED_FOR_THE_END = 0.04
"""Share of the time that is kept for choosing the ensemble."""
GRACE = 2.0
"""A fit may exceed its time by this factor before it is killed: it ends with a whole epoch."""
LEAST_LIMIT = 0.2
"""Nor is it killed before it has taken this share of the time left: a linear model has no epochs to end with."""
POLL_SECONDS = 0.5


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


def select(
    problem: Problem,
    settings: AutoSettings,
    graph: Data,
    *,
    minutes: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Selected:
    """Find the best ensemble within a time budget.

    Args:
        problem: What is to be learned.
        settings: How.
        graph: The problem's graph with all that predictions need, such as node ids.
        minutes: Time budget; ``None`` for that of the quality. One model is always made.
        checkpoint: Folder for finished models, from which the same selection goes on. ``None`` for none.
        on_progress: Called now and then.

    Raises:
        Interrupted: On Ctrl-C or SIGTERM; ``so_far`` is what the finished models make, ``None`` if there is none.
    """
    seconds = 60 * (settings.effort.minutes if minutes is None else minutes)
    with tempfile.TemporaryDirectory(prefix="gcnsl-") as folder:
        journal = Journal(Path(folder if checkpoint is None else checkpoint), problem.identity)
        journal.check_place()
        tournament = _Tournament(problem, settings, journal, seconds, on_progress)
        with Interruption() as interruption:
            try:
                tournament.run()
            except KeyboardInterrupt:
                interruption.ignore_further()
                so_far = tournament.choose(graph, "interrupted") if tournament.race.ranking() else None
                count = f"after {tournament.fits} models"
                raise Interrupted(
                    f"interrupted {count if tournament.fits else 'before a model was finished'}", so_far
                ) from None
        return tournament.choose(graph, "complete" if tournament.is_complete else "minutes")


class _Tournament:
    def __init__(
        self,
        problem: Problem,
        settings: AutoSettings,
        journal: Journal,
        seconds: float,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.problem, self._settings, self._journal, self._tell = problem, settings, journal, on_progress
        finished = list(journal.read())
        before = max((fit.elapsed for fit in finished), default=0.0)
        self._began, self._seconds = time.monotonic() - before, seconds * (1 - SAVED_FOR_THE_END)
        on_cpu = choose_device(problem.device).type == "cpu"
        self._processes = settings.processes or ((os.cpu_count() or 1) if on_cpu else 1)
        self.race = Race(
            problem,
            portfolio(problem.graph),
            Proposals(settings.effort.trials, seed=problem.seed),
            seconds=self._seconds,
            processes=self._processes,
            fits=finished,
        )
        self.fits, self.is_complete = len(finished), False

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def run(self) -> None:
        """Train until the time is over or nothing is left to do."""
        fitter = FoldFitter(self.problem, self._journal)
        with JobPool(call_fitter, fitter, processes=self._processes) as pool:
            while self.elapsed < self._seconds or not self.fits:
                while pool.has_room and (job := self.race.next_job(self.elapsed)) is not None:
                    is_first = not self.fits and not pool.running  # it is waited for, however long it takes
                    limit = max(GRACE * job.seconds + 1, LEAST_LIMIT * (self._seconds - self.elapsed))
                    pool.submit(job, seconds=math.inf if is_first else limit)
                if not pool.running:
                    self.is_complete = True
                    return
                self._report(pool.running)
                left = max(0.0, self._seconds - self.elapsed)
                for done in pool.wait(min(POLL_SECONDS, left) if self.fits else POLL_SECONDS):
                    self._count(done.item, done.result, done.error)

    def _count(self, job: FoldJob, fit: FoldFit | None, error: BaseException | None) -> None:
        if fit is not None:
            self.fits += 1
            self.race.add(fit)
        elif isinstance(error, TooSlow):
            self.race.fail(job, f"skipped: not finished within its share of {job.seconds:.0f} s")
        elif isinstance(error, TrainingDiverged):
            self.race.fail(job, "failed: training diverged")
        elif isinstance(error, MemoryError) or "memory" in str(error):
            self.race.fail(job, "failed: not enough memory")
        elif isinstance(error, InputError):
            self.race.fail(job, f"failed: {error}")
        elif error is not None:
            raise error

    def _report(self, running: list[FoldJob]) -> None:
        if self._tell is None:
            return
        ranking, left = self.race.ranking(), max(0.0, self._seconds - self.elapsed)
        best = ranking[0].candidate.name if ranking else None
        score = self.race.value(ranking[0], 1) if ranking else math.nan
        now = [job.candidate.name for job in running]
        self._tell(Progress(self.elapsed, left, self.fits, now, best, score, self.problem.metric))

    def choose(self, graph: Data, stopped: str) -> Selected:
        """The ensemble of what is finished, and the leaderboard."""
        if not self.race.ranking():
            failures = {c.candidate.name: c.failure for c in self.race.contenders.values() if c.failure}
            told = "; ".join(f"{name}: {why}" for name, why in failures.items())
            raise InputError(f"no model could be trained on this graph, look at it with `gcnsl inspect` ({told})")
        history = History(seconds=self.elapsed, stopped=stopped)
        return choose(self.race, self._journal, graph, history, single=self._settings.single)
