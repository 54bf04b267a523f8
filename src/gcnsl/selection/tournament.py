"""The whole procedure: a race within a time budget, an ensemble of the best, and a table of all that was tried."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from joblib import cpu_count
from torch_geometric.data import Data

from gcnsl.errors import Interrupted
from gcnsl.selection.auto_settings import AutoSettings
from gcnsl.selection.candidates import portfolio
from gcnsl.selection.choice import Selected, choose
from gcnsl.selection.fold_fit import Failed, FoldFitter, FoldJob, reason
from gcnsl.selection.journal import Journal, Trained
from gcnsl.selection.learning_problem import Problem
from gcnsl.selection.proposals import Proposals
from gcnsl.selection.race import Race
from gcnsl.training import History, choose_device
from gcnsl.training.environment import Interruption
from gcnsl.workers.executor import Crew, Executor, TooSlow, WorkerLost
from gcnsl.workers.processes import Processes
from gcnsl.workers.this_process import ThisProcess

STARTING_PAYS = 15.0
"""With fewer seconds in all, this process trains by itself: others would have hardly started."""
POLL_SECONDS = 0.5
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
        tournament = _Tournament(problem, settings, journal, seconds, executor=executor, on_progress=on_progress)
        try:
            tournament.run()
            with interruption.whole():
                return tournament.choose(graph, "complete" if tournament.is_complete else "minutes")
        except KeyboardInterrupt:
            interruption.ignore_further()
            so_far = tournament.choose(graph, "interrupted") if tournament.race.ranking() else None
            when = f"after {tournament.fits} models" if tournament.fits else "before a model was finished"
            raise Interrupted(f"interrupted {when}", so_far) from None


def _own_executor(problem: Problem, settings: AutoSettings, seconds: float) -> Executor:
    """One process on each core, or one in all for a GPU."""
    if seconds < STARTING_PAYS:
        return ThisProcess()
    on_cpu = choose_device(problem.device).type == "cpu"
    return Processes(settings.processes or (cpu_count() if on_cpu else 1))


class _Tournament:
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
            Proposals(settings.effort.trials, seed=problem.seed),
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
        fitter = FoldFitter(self.problem)
        with Crew(self._executor, fitter) as crew:
            while self._left > 0 or not self.fits:
                if not self._executor.ready and (job := self.race.quick_job(self.elapsed)) is not None:
                    self._report([job])
                    self._count(job, fitter(job))
                    continue
                while crew.has_room and (job := self.race.next_job(self.elapsed)) is not None:
                    # One model is waited for, however long it takes, and it is no use to give one up that goes on.
                    waits = not self._executor.gives_up_at_once or (not self.fits and not crew.running)
                    run = self._journal.run(job.candidate, job.fold) if job.spent else None
                    crew.submit(job._replace(run=run), seconds=math.inf if waits else job.limit)
                if not crew.running and crew.has_room:
                    self.is_complete = True
                    return
                self._report(crew.running)
                patience = min(POLL_SECONDS, max(0.0, self._left)) if self.fits else POLL_SECONDS
                for job, result in crew.wait(patience):
                    self._count(job, result)

    def _count(self, job: FoldJob, result: Trained | Failed | WorkerLost) -> None:
        """Count a model, or give its contender up: what happens to one of them does not end the selection."""
        if isinstance(result, TooSlow):
            what = f"stopped: fold {job.fold + 1} was" if job.fold or job.spent else "skipped:"
            self.race.fail(job.candidate, f"{what} not finished within {job.limit:.0f} s")
        elif isinstance(result, WorkerLost):
            self.race.fail(job.candidate, f"failed: {result}")
        elif isinstance(result, Failed):
            _LOGGER.debug("%s, fold %d, has failed\n%s", job.candidate.name, job.fold + 1, result.traceback)
            self.race.fail(job.candidate, f"failed: {result.why}")
        else:
            self._keep(job, result)

    def _keep(self, job: FoldJob, trained: Trained) -> None:
        try:
            self.race.add(self._journal.write(trained, job.candidate, job.fold))
            self.fits += 1
        except Exception as error:
            _LOGGER.debug("%s, fold %d, can't be used", job.candidate.name, job.fold + 1, exc_info=True)
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
