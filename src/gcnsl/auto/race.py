"""Which contender is trained next: one that goes on to its next fold, or a new one, as Optuna proposes it.

A search of one method's hyper-parameters is a :class:`Race`. Many methods within a time budget are a
:class:`TimedRace`: all candidates on one fold, more folds for the better ones, and new candidates in between. This is
asynchronous successive halving (ASHA; Li et al., 2020) with the number of folds as the resource: a contender goes on to
its next fold if it is in the better half of those that have come as far. A fit ends when its time is over, and counts
as it is; if there is time, it is repeated with more. Towards the end there are no new candidates, and the best
contenders complete their folds.
"""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optuna

from gcnsl.auto.candidates import Candidate, FoldJob, Problem, Proposals
from gcnsl.auto.ensemble import Judge, Merit, best_temperature, tempered
from gcnsl.auto.journal import Fit
from gcnsl.runs.jobs import Job, reason
from gcnsl.sparse import stored_entries
from gcnsl.training.metrics import Floats

PORTFOLIO_UNTIL, SEARCH_UNTIL = 0.5, 0.75
"""Shares of the time: at first only candidates of the portfolio are begun, and in the end no new ones."""
LEAST_SHARE = 0.04
"""A candidate has at least this share of the time."""
MOST_SHARE = 0.2
"""A fit that took this share of the time is not repeated with more."""
MORE = 4
"""A fit whose time was over is repeated with so many times as much."""
GRACE = 2.0
"""A fit may exceed its time by this factor before it is given up: it ends with a whole epoch."""
LEAST_LIMIT = 0.2
"""Nor is it given up before it has taken this share of the time left: a linear model has no epochs to end with."""
QUICK, WORTHWHILE = 0.2, 0.5
"""Shares of the time left: a candidate is quick if it should need no more than the first, and skipped if more than the
second."""
FOR_THE_END, LARGEST_END = 0.04, 0.3
"""Shares of the time that are kept for the end, at least and at most."""
COMPLETED = 10
"""So many contenders complete their folds in the end, if time allows."""


@dataclass(eq=False)
class Contender:
    """What is trained on one fold after the other.

    Attributes:
        candidate: What it is: in a search, the options that are searched for.
        trial: That of the study which has proposed it, until it is told how good it is.
        fits: What came of its first folds, in their order.
        is_running: Whether its next fold is being fitted.
        failure: Why it was given up; empty if it was not.
    """

    candidate: Any
    trial: optuna.Trial | None = None
    fits: list[Any] = field(default_factory=list)
    is_running: bool = False
    failure: str = ""

    @property
    def level(self) -> int:
        """Number of completed folds."""
        return len(self.fits)

    @property
    def is_untried(self) -> bool:
        """Whether it has not begun."""
        return not (self.fits or self.is_running or self.failure)

    @property
    def is_waiting(self) -> bool:
        """Whether it has finished some folds, and can go on."""
        return self.level > 0 and not self.is_running and not self.failure

    @property
    def seconds(self) -> float:
        """Mean time of a fit."""
        return float(np.mean([fit.seconds + fit.predict_seconds for fit in self.fits]))

    def tell(self, gain: float | None, *, otherwise: Any = optuna.trial.TrialState.FAIL) -> None:
        """Tell who has proposed it how good it is or, if there is no answer, what has become of it."""
        if self.trial is not None:
            self.trial.study.tell(self.trial, gain, state=otherwise if gain is None else None)
            self.trial = None

    def falls_behind(self, gain: float) -> bool:
        """Whether Optuna gives it up, now that it is so good on its first folds."""
        assert self.trial is not None
        self.trial.report(gain, self.level - 1)
        return self.trial.should_prune()

    def probabilities(self) -> Floats:
        """Mean over the folds' models, for all nodes (n × C)."""
        mean: Floats = np.mean([fit.probabilities for fit in self.fits], axis=0)
        return mean


class Race(ABC):
    """Decides what to train next: contenders that go on to their next fold, and new ones.

    Args:
        folds: Number of folds.
    """

    def __init__(self, folds: int) -> None:
        self.folds = folds
        self.contenders: dict[Any, Contender] = {}

    @abstractmethod
    def merit(self, contender: Contender, level: int) -> Any:
        """How good a contender is on its first folds; more is better."""

    @abstractmethod
    def _next(self, elapsed: float) -> Contender | None:
        """Who is next."""

    @abstractmethod
    def _job(self, contender: Contender, elapsed: float) -> Job:
        """Its next one."""

    def next_job(self, elapsed: float) -> Any:
        """What to begin now, after so many seconds; ``None`` if nothing is left that fits into the time."""
        chosen = self._next(elapsed)
        if chosen is None:
            return None
        chosen.is_running = True
        return self._job(chosen, elapsed)

    def ranking(self, level: int = 1) -> list[Contender]:
        """The contenders that have come so far, the best first."""
        far = (contender for contender in self.contenders.values() if contender.level >= level)
        return sorted(far, key=lambda contender: self.merit(contender, level), reverse=True)

    def _promotable(self, share: float = 1.0, left: float = math.inf) -> Contender | None:
        """One that waits, in the best part of those that have come as far; the farthest if there are several."""
        for level in range(self.folds, 0, -1):
            ranking = self.ranking(level)
            for contender in ranking[: math.ceil(share * len(ranking))]:
                if contender.level == level and contender.is_waiting and self._goes_on(contender, left):
                    return contender
        return None

    def _goes_on(self, contender: Contender, left: float) -> bool:
        return contender.level < self.folds


class TimedRace(Race):
    """The race of many methods within a time budget.

    Args:
        problem: What is to be learned.
        portfolio: The first candidates, cheap ones first.
        trials: How many further candidates are proposed.
        seconds: Time for everything.
        processes: How many fits run at the same time.
        fits: Those that are finished already, those of earlier folds first.
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
    ) -> None:
        super().__init__(problem.folds)
        self.problem, self.judge = problem, Judge(problem.metric)
        self._total, self._processes = seconds, processes
        self._millions: float = (stored_entries(problem.graph.x) + problem.graph.num_edges) / 1e6
        self.contenders = {candidate: Contender(candidate) for candidate in portfolio}
        self._judged = dict[tuple[Candidate, int], tuple[Merit, float]]()
        for fit in fits:
            if fit.fold == self.contenders.get(fit.candidate, Contender(fit.candidate)).level:  # none is missing before
                try:
                    self.add(fit)
                except Exception as error:
                    self.fail(fit.candidate, f"failed: {reason(error)}")
        proposed = [c for c in self.contenders.values() if c.fits and c.candidate not in portfolio]
        self._proposals = Proposals(
            trials, seed=problem.seed, tried=[(c.candidate, self.merit(c, 1).first) for c in proposed]
        )

    @property
    def seconds(self) -> float:
        """Time for training.

        The rest is for the end: one model is restored, and all is judged and saved. On a large graph this takes about
        twice the time of the cheapest candidate, which also does little more than read the graph.
        """
        cheapest = min((fit.least_seconds for fit in self._first_fits()), default=0.0)
        return self._total - min(max(FOR_THE_END * self._total, 2 * cheapest), LARGEST_END * self._total)

    def quick_job(self, elapsed: float) -> FoldJob | None:
        """A new candidate that should take so little time that it need not be given up; ``None`` if there is none."""
        most = QUICK * (self.seconds - elapsed)
        quick = [each for each in self._untried() if self._least_seconds(each.candidate) <= most]
        if not quick or elapsed >= PORTFOLIO_UNTIL * self.seconds:
            return None
        quick[0].is_running = True
        return self._job(quick[0], elapsed)

    def add(self, fit: Fit) -> None:
        """Count a finished fit."""
        contender = self._contender(fit.candidate)
        before, contender.is_running = contender.fits, False
        contender.fits = [*before[: fit.fold], fit]  # in place of one that had less time
        self._judged.pop((fit.candidate, fit.fold + 1), None)
        try:
            merit = self.merit(contender, contender.level)
        except Exception:
            contender.fits = before
            raise
        contender.tell(merit.first)

    def fail(self, candidate: Candidate, why: str) -> None:
        """Give a contender up; its finished fits count."""
        contender = self._contender(candidate)
        contender.failure, contender.is_running = why, False
        contender.tell(None)

    def merit(self, contender: Contender, level: int) -> Merit:
        """How good a contender is on the nodes of its first folds."""
        return self._judge(contender, level)[0]

    def temperature(self, contender: Contender, level: int) -> float:
        """The best one on the nodes of its first folds, so that the log loss does not punish one that is too sure."""
        return self._judge(contender, level)[1]

    def _judge(self, contender: Contender, level: int) -> tuple[Merit, float]:
        known = (contender.candidate, level)
        if known not in self._judged:
            y, given = self.truth(level), self._held_out(contender, level)
            temperature = best_temperature(given, y)
            self._judged[known] = self.judge.merit(tempered(given, temperature), y), temperature
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
        return self.judge.value(self.out_of_fold(contender, level), self.truth(level))

    def _contender(self, candidate: Candidate) -> Contender:
        return self.contenders.setdefault(candidate, Contender(candidate))

    def _untried(self) -> list[Contender]:
        return [contender for contender in self.contenders.values() if contender.is_untried]

    def _first_fits(self) -> list[Fit]:
        return [contender.fits[0] for contender in self.contenders.values() if contender.fits]

    def _next(self, elapsed: float) -> Contender | None:
        share, left, chosen = elapsed / self.seconds, self.seconds - elapsed, None
        self._skip(left)
        untried = self._untried()
        if share >= PORTFOLIO_UNTIL or not untried:
            is_late = share >= SEARCH_UNTIL
            chosen = self._incomplete(left) if is_late else self._promotable(0.5, left) or self._short(left)
        if chosen is None and share < SEARCH_UNTIL:
            chosen = untried[0] if untried else self._new(left)
        chosen = chosen or self._incomplete(left)
        if chosen is None and untried and (left > 0 or not self.ranking()):  # one model is always made
            chosen = untried[0]
        return chosen

    def _job(self, contender: Contender, elapsed: float) -> FoldJob:
        """The next fold of a contender, with twice the time that it should take, or its last one again, with more.

        For the first fold this is its share of the time that new candidates have; then it is known from before.
        """
        left, least = self.seconds - elapsed, self._least_seconds(contender.candidate)
        expected = contender.seconds + 1 if contender.fits else max(self._share(elapsed), least)
        is_repeated = self._deserves_more(contender, left)
        seconds = max(0.0, min((MORE if is_repeated else 2) * expected, left))
        limit = min(left, max(GRACE * seconds + 1, LEAST_LIMIT * left))
        return self.problem.job(contender.candidate, contender.level - is_repeated, seconds=seconds, limit=limit)

    def _skip(self, left: float) -> None:
        """Give up the candidates that would take too much of the time left, however briefly they trained."""
        for contender in self._untried():
            seconds = self._least_seconds(contender.candidate)
            if seconds > WORTHWHILE * left > 0:
                needed = f"needs about {_seconds(seconds)}, more than half of the {_seconds(left)} left"
                contender.failure = f"skipped: {needed if left >= 1 else 'no time left'}"

    def _least_seconds(self, candidate: Candidate) -> float:
        """The time that the shortest fit of a candidate should take; 0 before the first fit is finished.

        The usual time is multiplied by a factor of the machine, the median over the finished fits.
        """
        ratios = [fit.least_seconds / fit.candidate.usual_seconds(self._millions) for fit in self._first_fits()]
        return statistics.median(ratios) * candidate.usual_seconds(self._millions) if ratios else 0.0

    def _share(self, elapsed: float) -> float:
        left = max(0.0, PORTFOLIO_UNTIL * self.seconds - elapsed) * self._processes
        return max(left / (1 + len(self._untried())), LEAST_SHARE * self.seconds)

    def _new(self, left: float) -> Contender | None:
        """The next proposal that has not been tried; of one that has, the proposals are told how good it was."""
        while (proposal := self._proposals.ask(self._promising(left))) is not None:
            new = Contender(*proposal)
            known = self.contenders.setdefault(new.candidate, new)
            if known is new:
                return new
            new.tell(self.merit(known, 1).first if known.fits else None)
        return None

    def _deserves_more(self, contender: Contender, left: float) -> bool:
        """Whether the time of its last fit was over, so that it is repeated with more."""
        last = contender.fits[-1] if contender.fits else None
        most = min(MOST_SHARE * self.seconds, left / 4)
        return last is not None and last.is_cut and last.seconds < most and left > (1 - SEARCH_UNTIL) * self.seconds

    def _goes_on(self, contender: Contender, left: float) -> bool:
        return super()._goes_on(contender, left) or self._deserves_more(contender, left)

    def _short(self, left: float) -> Contender | None:
        """The best one whose last fit had too little time, though it is among the worse half."""
        waiting = (each for each in self.ranking() if each.is_waiting and self._deserves_more(each, left))
        return next(waiting, None)

    def _incomplete(self, left: float) -> Contender | None:
        """Of the best contenders, as many as can complete their folds in time, the one that is farthest behind.

        If these have completed them, the time is for the others.
        """
        ranking = sorted(self.ranking(), key=lambda each: self.merit(each, each.level), reverse=True)[:COMPLETED]
        costs = np.cumsum([each.seconds * (self.folds - each.level) for each in ranking])
        finalists = max(1, int((costs <= left * self._processes).sum()))
        for group in (ranking[:finalists], ranking[finalists:]):
            unfinished = (each for each in group if each.is_waiting and each.level < self.folds)
            waiting = [each for each in unfinished if each.seconds <= left]
            if waiting:
                return min(waiting, key=lambda contender: contender.level)
        return None

    def _promising(self, left: float) -> list[str]:
        """Methods by their best contender, if several fits of them have time."""
        quick = (each for each in self.ranking() if each.seconds < left / 8)
        return list(dict.fromkeys(contender.candidate.method for contender in quick))


def _seconds(number: float) -> str:
    return f"{number:.0f} s" if number >= 10 else f"{number:.1f} s"
