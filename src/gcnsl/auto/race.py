"""Which contender is trained next: one that goes on to its next fold, or a new one, as Optuna proposes it.

A search of one method's hyper-parameters is a :class:`Race`. Many methods within a time budget are a
:class:`TimedRace`: all candidates on one fold, more folds for the better ones, and new candidates in between. This is
asynchronous successive halving (ASHA; Li et al., 2020) with the number of folds as the resource: a contender goes on to
its next fold if it is in the better half of those that have come as far, up to as many folds as have nodes enough to
compare on. A fit that has had its share of the time goes on as long as its learning curve promises to reach the best
contender. Towards the end there are no new candidates, and the members of the ensemble complete their folds.
"""

from __future__ import annotations

import logging
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import optuna

from gcnsl.auto.candidates import Candidate, FoldJob, Problem
from gcnsl.auto.ensemble import Weighted, best_temperature, merit, tempered, weigh_models
from gcnsl.auto.journal import Fit, Journal, SavedModel
from gcnsl.auto.proposals import Proposals, Tried
from gcnsl.runs.executor import Crew, Executor, TooSlow, WorkerLost
from gcnsl.runs.jobs import Failed, reason
from gcnsl.sparse import stored_entries
from gcnsl.training import TrainingSettings
from gcnsl.training.metrics import METRICS, Floats

PORTFOLIO_UNTIL, SEARCH_UNTIL = 0.5, 0.75
"""Shares of the time: at first only candidates of the portfolio are begun, and in the end the ensemble comes first."""
LEAST_SHARE = 0.04
"""A candidate has at least this share of the time."""
MOST_SHARE = 0.6
"""A fit takes no more than this share of the time left, whatever its learning curve promises."""
GRACE, LEAST_LIMIT = 2.0, 0.2
"""A fit without epochs may exceed its share by this factor, or take this share of the time left, before it is given up.
Others end by themselves, with a whole epoch."""
WORTHWHILE = 0.5
"""A candidate that should need more than this share of the time left is skipped."""
FOR_THE_END, LARGEST_END = 0.04, 0.3
"""Shares of the time that are kept for the end, at least and at most."""
LEAST_POOL, LARGEST_POOL = 3, 15
"""At least three contenders should be compared; more than 15 are not looked at."""
SAME, LOOKED_AT = 0.01, 2000
"""Predictions are the same if the probabilities of so many nodes differ by no more than this on average."""
POLL_SECONDS = 0.5
_LOGGER = logging.getLogger("gcnsl")


@dataclass(eq=False)
class Contender:
    """What is trained on one fold after the other."""

    candidate: Any
    """What it is: in a search, the options that are searched for."""
    trial: optuna.Trial | None = None
    """That of the study which has proposed it, until it is told how good it is."""
    fits: list[Any] = field(default_factory=list)
    """What came of its first folds, in their order."""
    is_running: bool = False
    failure: str = ""
    """Why it was given up; empty if it was not."""
    same_as: str = ""
    """The name of another contender with the same predictions, which is enough."""

    @property
    def level(self) -> int:
        """Number of completed folds."""
        return len(self.fits)

    @property
    def is_waiting(self) -> bool:
        """Whether it has finished some folds, and can go on."""
        return self.level > 0 and not (self.is_running or self.failure or self.same_as)

    @property
    def seconds(self) -> float:
        """Mean time of a fit."""
        return statistics.fmean(fit.seconds + fit.predict_seconds for fit in self.fits)

    def tell(self, gain: float | None, *, otherwise: Any = optuna.trial.TrialState.FAIL) -> None:
        """Tell who has proposed it how good it is or, if there is no answer, what has become of it."""
        if self.trial is not None:
            self.trial.study.tell(self.trial, gain, state=otherwise if gain is None else None)
            self.trial = None

    def probabilities(self) -> Floats:
        """Mean over the folds' models, for all nodes (n × C)."""
        mean: Floats = np.mean([fit.probabilities for fit in self.fits], axis=0)
        return mean


class Race(ABC):
    """Decides what to train next, and has it trained: contenders that go on to their next fold, and new ones.

    Args:
        folds: Number of folds that contenders are compared on.
    """

    def __init__(self, folds: int) -> None:
        self.folds = folds
        self.contenders: dict[Any, Contender] = {}

    @property
    def seconds(self) -> float:
        """Time for training; nothing is awaited after it, once there is a result."""
        return math.inf

    @abstractmethod
    def merit(self, contender: Contender, level: int) -> Any:
        """How good a contender is on its first folds; more is better."""

    @abstractmethod
    def next_job(self, elapsed: float) -> Any:
        """What to begin now, after so many seconds; ``None`` if nothing is left that fits into the time."""

    @abstractmethod
    def count(self, job: Any, result: Any, elapsed: float) -> None:
        """Take what came of a job, which may be a failure."""

    def run(
        self,
        executor: Executor,
        trainer: Callable[[Any], Any],
        clock: Callable[[], float],
        on_news: Callable[[float, list[Any]], None] = lambda *_: None,
    ) -> str:
        """Train until the time is over ("minutes") or nothing is left to do ("complete"), and return which it was.

        The trainer does a job, the clock tells the seconds since the beginning, and ``on_news`` is called now and then
        with these and the jobs under way.
        """
        with Crew(executor, trainer) as crew:
            while clock() < self.seconds or not self.ranking():
                while crew.has_room and (job := self.next_job(clock())) is not None:
                    # One model is waited for, however long it takes, and it is no use to give one up that goes on.
                    waits = not executor.gives_up_at_once or not (self.ranking() or crew.running)
                    crew.submit(job, seconds=math.inf if waits else job.limit)
                if not crew.running and crew.has_room:
                    return "complete"
                on_news(clock(), crew.running)
                left = self.seconds - clock() if self.ranking() else math.inf
                for job, result in crew.wait(min(POLL_SECONDS, max(0.0, left))):
                    self.count(job, result, clock())
        return "minutes"

    def ranking(self, level: int = 1) -> list[Contender]:
        """The contenders that have come so far, the best first."""
        far = (contender for contender in self.contenders.values() if contender.level >= level)
        return sorted(far, key=lambda contender: self.merit(contender, level), reverse=True)

    def _promotable(self, share: float = 1.0, left: float = math.inf) -> Contender | None:
        """One that waits and has time, in the best part of those that have come as far; the farthest of several."""
        for level in range(self.folds - 1, 0, -1):
            ranking = self.ranking(level)
            waiting = (c for c in ranking[: math.ceil(share * len(ranking))] if c.level == level and c.is_waiting)
            chosen = next((c for c in waiting if left == math.inf or c.seconds <= left), None)
            if chosen is not None:
                return chosen
        return None


class TimedRace(Race):
    """The race of many methods within a time budget.

    Candidates of the portfolio are tried in its order, and so many further ones are proposed (``trials``). There are
    so many seconds for everything, and processes that fit at the same time. Some fits may be finished already, those
    of earlier folds first; further ones are kept in the journal.
    """

    def __init__(
        self,
        problem: Problem,
        portfolio: Sequence[Candidate],
        *,
        trials: int,
        seconds: float,
        processes: int,
        fits: Iterable[Fit] = (),
        journal: Journal | None = None,
    ) -> None:
        super().__init__(problem.compared)
        self.problem, self._journal = problem, journal or Journal(None, problem.identity)
        self._total, self._processes = seconds, processes
        self._millions: float = (stored_entries(problem.graph.x) + problem.graph.num_edges) / 1e6
        self.contenders = {candidate: Contender(candidate) for candidate in portfolio}
        self._judged = dict[tuple[Candidate, int], tuple[tuple[float, float], float]]()
        self._weighed: tuple[list[Contender], Weighted] | None = None
        self._repeated: list[str] = []  # the methods of proposals that were contenders already
        for fit in fits:
            if fit.fold == self.contenders.get(fit.candidate, Contender(fit.candidate)).level:  # none is missing before
                try:
                    self.add(fit)
                except Exception as error:
                    self.fail(fit.candidate, f"failed: {reason(error)}")
        proposed = [c for c in self.contenders.values() if c.fits and c.candidate not in portfolio]
        self._proposals = Proposals(
            trials, seed=problem.seed, tried=[(c.candidate, self.merit(c, 1)[0]) for c in proposed]
        )

    @property
    def seconds(self) -> float:
        """Time for training.

        The rest is for the end: one model is restored, and all is judged and saved. On a large graph this takes about
        twice the time of the cheapest candidate, which also does little more than read the graph.
        """
        cheapest = min((fit.least_seconds for fit in self._first_fits()), default=0.0)
        return self._total - min(max(FOR_THE_END * self._total, 2 * cheapest), LARGEST_END * self._total)

    def next_job(self, elapsed: float) -> FoldJob | None:
        """What to begin now, after so many seconds; ``None`` if nothing is left that fits into the time."""
        chosen = self._next(elapsed)
        return None if chosen is None else self._job(chosen, elapsed)

    def count(self, job: FoldJob, result: tuple[Fit, SavedModel] | Failed | WorkerLost, elapsed: float) -> None:
        """Keep a model, or give its contender up: what happens to one of them does not end the race."""
        name, fold = job.candidate.name, job.run + 1
        if isinstance(result, TooSlow):
            what = f"stopped: fold {fold} was" if self.contenders[job.candidate].fits else "skipped:"
            why = f"{what} not finished within {job.limit:.0f} s"
        elif isinstance(result, WorkerLost):
            why = f"failed: {result}"
        elif isinstance(result, Failed):
            _LOGGER.debug("%s, fold %d, has failed\n%s", name, fold, result.traceback)
            why = f"failed: {result.why}"
        else:
            try:
                fit = replace(result[0], elapsed=elapsed)
                self._journal.write(fit, result[1])
                self.add(fit)
                return
            except Exception as error:
                _LOGGER.debug("%s, fold %d, can't be used", name, fold, exc_info=True)
                why = f"failed: {reason(error)}"
        self.fail(job.candidate, why)

    def add(self, fit: Fit) -> None:
        """Count a finished fit."""
        contender = self.contenders.setdefault(fit.candidate, Contender(fit.candidate))
        before, contender.is_running = contender.fits, False
        contender.fits = [*before, fit]
        try:
            gain = self.merit(contender, contender.level)[0]
        except Exception:
            contender.fits = before
            raise
        if not before:
            others = (each for each in self.contenders.values() if each is not contender and each.fits)
            contender.same_as = next((o.candidate.name for o in others if not o.same_as and _same(o, fit)), "")
        contender.tell(gain)
        if fit.fold < self.folds:
            self._weighed = None

    def fail(self, candidate: Candidate, why: str) -> None:
        """Give a contender up; its finished fits count."""
        contender = self.contenders.setdefault(candidate, Contender(candidate))
        contender.failure, contender.is_running = why, False
        contender.tell(None)

    def lose(self, contender: Contender, why: str) -> None:
        """Give a contender up, and forget its fits."""
        self.fail(contender.candidate, why)
        contender.fits, self._weighed = [], None
        for each in self.contenders.values():
            each.same_as = "" if each.same_as == contender.candidate.name else each.same_as

    def merit(self, contender: Contender, level: int) -> tuple[float, float]:
        """How good a contender is on the nodes of its first folds."""
        return self._judge(contender, level)[0]

    def temperature(self, contender: Contender, level: int) -> float:
        """The best one on the nodes of its first folds, so that the log loss does not punish one that is too sure."""
        return self._judge(contender, level)[1]

    def _judge(self, contender: Contender, level: int) -> tuple[tuple[float, float], float]:
        known = (contender.candidate, level)
        if known not in self._judged:
            y, given = self.truth(level), self._held_out(contender, level)
            temperature = best_temperature(given, y)
            self._judged[known] = merit(self.problem.metric, tempered(given, temperature), y), temperature
        return self._judged[known]

    def truth(self, level: int) -> Any:
        """The classes of the nodes of the first folds (v)."""
        return self.problem.graph.y[self.problem.validated(level)].numpy()

    def _held_out(self, contender: Contender, level: int) -> Floats:
        nodes = self.problem.validated(level).nonzero().flatten().numpy()
        stacked = np.stack([fit.probabilities[nodes] for fit in contender.fits[:level]])
        chosen: Floats = stacked[self.problem.fold.numpy()[nodes], np.arange(len(nodes))]
        return chosen

    def out_of_fold(self, contender: Contender, level: int) -> Floats:
        """Probabilities of the nodes of its first folds by models that have not learned from them (v × C)."""
        return tempered(self._held_out(contender, level), self.temperature(contender, level))

    def probabilities(self, contender: Contender, level: int) -> Floats:
        """Probabilities of all nodes (n × C), with the temperature of so many folds, or of all that are complete."""
        return tempered(contender.probabilities(), self.temperature(contender, min(level, contender.level)))

    def value(self, contender: Contender, level: int) -> float:
        """The metric of a contender on the nodes of its first folds."""
        return METRICS[self.problem.metric](self.out_of_fold(contender, level), self.truth(level))

    @property
    def level(self) -> int:
        """The number of folds that contenders can be compared on now; those that have completed fewer are left out.

        At least three contenders of the better half, as the first fold ranks them, have completed so many.
        """
        ranking = self.ranking()
        better = ranking[: max(LEAST_POOL, len(ranking) // 2)]
        return min(self.folds, sorted((contender.level for contender in better), reverse=True)[:LEAST_POOL][-1])

    def weighed(self) -> tuple[list[Contender], Weighted]:
        """The best contenders, each with predictions of its own, and the ensemble of them."""
        if self._weighed is None:
            level = self.level
            pool = [each for each in self.ranking(level) if not each.same_as][:LARGEST_POOL]
            given = np.stack([self.out_of_fold(contender, level) for contender in pool])
            self._weighed = pool, weigh_models(given, self.truth(level), self.problem.metric, seed=self.problem.seed)
        return self._weighed

    @property
    def fits(self) -> int:
        """The number of finished fits."""
        return sum(contender.level for contender in self.contenders.values())

    def _untried(self) -> list[Contender]:
        return [each for each in self.contenders.values() if not (each.fits or each.is_running or each.failure)]

    def _first_fits(self) -> list[Fit]:
        return [contender.fits[0] for contender in self.contenders.values() if contender.fits]

    def _next(self, elapsed: float) -> Contender | None:
        share, left = elapsed / self.seconds, self.seconds - elapsed
        self._skip(left)
        untried = self._untried()
        if untried and (share < PORTFOLIO_UNTIL or not self.ranking()):  # one model is always made
            return untried[0]
        if share >= SEARCH_UNTIL and (chosen := self._incomplete(left)) is not None:
            return chosen
        chosen = self._promotable(0.5 if share < SEARCH_UNTIL else 1.0, left)
        if chosen is None and untried and left > 0:
            chosen = untried[0]
        return chosen or self._new(left) or self._incomplete(left) or self._promotable(1.0, left)

    def _job(self, contender: Contender, elapsed: float) -> FoldJob:
        """The next fold of a contender: its share of the time or, if it is known, twice what the last one took.

        If its learning curve promises enough, the first fold may take most of the time left.
        """
        left, candidate, contender.is_running = max(0.0, self.seconds - elapsed), contender.candidate, True
        if contender.fits:
            seconds = min(2 * contender.seconds + 1, 0.95 * left)
            return self.problem.job(candidate, contender.level, seconds=seconds, limit=min(left, GRACE * seconds + 1))
        for_portfolio = max(0.0, PORTFOLIO_UNTIL * self.seconds - elapsed) * self._processes
        share = max(for_portfolio / (1 + len(self._untried())), LEAST_SHARE * self.seconds)
        share = min(max(share, 2 * self._least_seconds(candidate)), 0.95 * left)
        seconds = max(share, MOST_SHARE * left)
        limit = left if _by_epochs(contender) else min(left, max(GRACE * share + 1, LEAST_LIMIT * left))
        return self.problem.job(candidate, 0, seconds=seconds, limit=limit, share=share, goals=self._goals())

    def _goals(self) -> tuple[float, float]:
        """The metric and the log loss of the best contender on the first fold, more being better."""
        ranking = self.ranking()
        if not ranking:
            return -math.inf, -math.inf
        log_loss = METRICS["log-loss"](self.out_of_fold(ranking[0], 1), self.truth(1))
        return METRICS[self.problem.metric].gain(self.value(ranking[0], 1)), -log_loss

    def _skip(self, left: float) -> None:
        """Give up the candidates that would take too much of the time left, however briefly they trained."""
        for contender in self._untried():
            seconds = self._least_seconds(contender.candidate)
            if seconds > WORTHWHILE * left > 0:
                needed = f"needs about {seconds:.0f} s, more than half of the {left:.0f} s left"
                contender.failure = f"skipped: {needed if left >= 1 else 'no time left'}"

    def _least_seconds(self, candidate: Candidate) -> float:
        """The time that the shortest fit of a candidate should take; 0 before the first fit is finished.

        The usual time is multiplied by a factor of the machine, the median over the finished fits.
        """
        ratios = [fit.least_seconds / fit.candidate.usual_seconds(self._millions) for fit in self._first_fits()]
        return statistics.median(ratios) * candidate.usual_seconds(self._millions) if ratios else 0.0

    def _new(self, left: float) -> Contender | None:
        """The next proposal that has not been tried; of one that has, the proposals are told how good it was."""
        while (proposal := self._proposals.ask(self._tried(left))) is not None:
            new = Contender(*proposal)
            known = self.contenders.setdefault(new.candidate, new)
            if known is new:
                return new
            self._repeated.append(new.candidate.method)
            new.tell(self.merit(known, 1)[0] if known.fits else None)
        return None

    def _tried(self, left: float) -> dict[str, Tried]:
        """What is known of each method of which a fit has time."""
        of: dict[str, list[Contender]] = {}
        for each in self.ranking():
            of.setdefault(each.candidate.method, []).append(each)
        tried = {}
        for method, some in of.items():
            new = sum(not each.same_as for each in some) / (len(some) + self._repeated.count(method))
            gains = [self.merit(each, 1)[0] for each in some]
            tried[method] = Tried(gains, statistics.fmean(each.seconds for each in some), new)
        return {method: each for method, each in tried.items() if 2 * each.seconds < left}

    def _incomplete(self, left: float) -> Contender | None:
        """Of the ensemble's members that have time for it, the one with fewest folds; it goes on to its next."""
        if not self.ranking():
            return None
        pool, (weights, _) = self.weighed()
        members = [pool[number] for number in np.argsort(-weights, kind="stable") if weights[number] > 0]
        able = (c for c in members if c.is_waiting and c.level < self.problem.folds and c.seconds <= left)
        return min(able, key=lambda contender: contender.level, default=None)


def _by_epochs(contender: Contender) -> bool:
    """Whether it is a network, whose training ends by itself after a whole epoch."""
    return isinstance(contender.candidate.resolved.training, TrainingSettings)


def _same(contender: Contender, fit: Fit) -> bool:
    """Whether a contender's first model predicts the same as a fit."""
    step = max(1, len(fit.probabilities) // LOOKED_AT)
    apart = np.abs(contender.fits[0].probabilities[::step] - fit.probabilities[::step]).sum(axis=1)
    return bool(apart.mean() / 2 <= SAME)
