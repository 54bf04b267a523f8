"""The order of the work: all candidates on one fold, more folds for the better ones, and new candidates in between.

This is asynchronous successive halving (ASHA; Li et al., 2020) with the number of folds as the resource: a contender
goes on to its next fold if it is in the better half of those that have come as far. Towards the end there are no new
candidates, and the best contenders complete their folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gcnsl.selection.candidates import Candidate
from gcnsl.selection.fold_fit import FoldJob
from gcnsl.selection.journal import FoldFit
from gcnsl.selection.judge import Judge, Merit
from gcnsl.selection.problem import Problem
from gcnsl.selection.proposals import Proposals

PORTFOLIO_UNTIL, SEARCH_UNTIL = 0.5, 0.75
"""Shares of the time: at first only candidates of the portfolio are begun, and in the end no new ones."""
LEAST_SHARE = 0.04
"""A candidate has at least this share of the time."""
COMPLETED = 10
"""So many contenders complete their folds in the end, if time allows."""
Floats = NDArray[np.float32]


@dataclass(eq=False)
class Contender:
    """A candidate in the race: its fits by fold, how many folds it has begun, and why it was given up, if so."""

    candidate: Candidate
    fits: dict[int, FoldFit] = field(default_factory=dict)
    begun: int = 0
    failure: str = ""

    @property
    def level(self) -> int:
        """How many of the first folds are complete."""
        return next(fold for fold in range(len(self.fits) + 1) if fold not in self.fits)

    @property
    def seconds(self) -> float:
        """Mean time of a fit."""
        return float(np.mean([fit.seconds + fit.predict_seconds for fit in self.fits.values()]))

    @property
    def is_resting(self) -> bool:
        """Whether another fold could be begun."""
        return not self.failure and self.begun == len(self.fits) > 0

    def out_of_fold(self, problem: Problem, folds: int) -> Floats:
        """Probabilities of the nodes validated in the first folds (v × C), by the models that did not learn them."""
        nodes = problem.validated(folds).nonzero().flatten().numpy()
        own = problem.fold.numpy()[nodes]
        stacked = np.stack([self.fits[fold].probabilities[nodes] for fold in range(folds)])
        chosen: Floats = stacked[own, np.arange(len(nodes))]
        return chosen

    def probabilities(self) -> Floats:
        """Mean over the folds' models, for all nodes (n × C)."""
        mean: Floats = np.mean([fit.probabilities for fit in self.fits.values()], axis=0)
        return mean


class Race:
    """Decides what to train next.

    Args:
        problem: What is to be learned.
        portfolio: The first candidates, cheap ones first.
        proposals: Where further candidates come from.
        seconds: Time for everything.
        processes: How many fits run at the same time.
        fits: Those that are finished already.
    """

    def __init__(
        self,
        problem: Problem,
        portfolio: Sequence[Candidate],
        proposals: Proposals,
        *,
        seconds: float,
        processes: int,
        fits: Iterable[FoldFit] = (),
    ) -> None:
        self.problem, self.judge = problem, Judge(problem.metric)
        self._proposals, self._seconds, self._processes = proposals, seconds, processes
        self.contenders = {candidate: Contender(candidate) for candidate in portfolio}
        self._untried, self._merits = list(portfolio), dict[tuple[Candidate, int], Merit]()
        for fit in fits:
            self._contender(fit.candidate).begun += 1
            self.add(fit)

    def next_job(self, elapsed: float) -> FoldJob | None:
        """What to begin now, after so many seconds; ``None`` if nothing is left that fits into the time."""
        share, left, chosen = elapsed / self._seconds, self._seconds - elapsed, None
        if share >= PORTFOLIO_UNTIL or not self._untried:
            chosen = self._promotable() if share < SEARCH_UNTIL else self._incomplete(left)
        if chosen is None and share < SEARCH_UNTIL:
            proposed = self._untried[0] if self._untried else self._proposals.ask(self._promising(left))
            if proposed is not None:
                return self._first_job(proposed, elapsed)
        chosen = chosen or self._incomplete(left)
        if chosen is None:
            return self._first_job(self._untried[0], elapsed) if self._untried and left > 0 else None
        chosen.begun += 1
        return FoldJob(chosen.candidate, chosen.begun - 1, min(left, 1 + 2 * chosen.seconds), elapsed)

    def add(self, fit: FoldFit) -> None:
        """Count a finished fit."""
        contender = self._contender(fit.candidate)
        contender.fits[fit.fold] = fit
        if contender.level == 1:
            self._proposals.tell(fit.candidate, self.merit(contender).first)

    def fail(self, job: FoldJob, why: str) -> None:
        """Give a contender up; its finished fits count."""
        self._contender(job.candidate).failure = why
        if not self._contender(job.candidate).fits:
            self._proposals.tell(job.candidate, None)

    def merit(self, contender: Contender, level: int | None = None) -> Merit:
        """How good a contender is on the nodes of its first folds, by default all that are complete."""
        level = contender.level if level is None else level
        known = (contender.candidate, level)
        if known not in self._merits:
            y = self.problem.graph.y[self.problem.validated(level)].numpy()
            self._merits[known] = self.judge.merit(contender.out_of_fold(self.problem, level), y)
        return self._merits[known]

    def value(self, contender: Contender, level: int) -> float:
        """The metric of a contender on the nodes of its first folds."""
        y = self.problem.graph.y[self.problem.validated(level)].numpy()
        return self.judge.value(contender.out_of_fold(self.problem, level), y)

    def ranking(self, level: int = 1) -> list[Contender]:
        """The contenders that have come so far, the best first."""
        far = (contender for contender in self.contenders.values() if contender.level >= level)
        return sorted(far, key=lambda contender: self.merit(contender, level), reverse=True)

    def _contender(self, candidate: Candidate) -> Contender:
        if candidate in self._untried:
            self._untried.remove(candidate)
        return self.contenders.setdefault(candidate, Contender(candidate))

    def _first_job(self, candidate: Candidate, elapsed: float) -> FoldJob:
        """The first fold of a candidate, with twice its share of the time that new candidates have."""
        self._contender(candidate).begun = 1
        left = max(0.0, PORTFOLIO_UNTIL * self._seconds - elapsed) * self._processes
        share = max(left / (1 + len(self._untried)), LEAST_SHARE * self._seconds)
        return FoldJob(candidate, 0, min(2 * share, self._seconds - elapsed), elapsed)

    def _promotable(self) -> Contender | None:
        """One that rests and is in the better half of those that have come as far; the farthest if there are some."""
        for level in range(self.problem.folds - 1, 0, -1):
            ranking = self.ranking(level)
            for contender in ranking[: math.ceil(len(ranking) / 2)]:
                if contender.is_resting and contender.level == level:
                    return contender
        return None

    def _incomplete(self, left: float) -> Contender | None:
        """Of the best contenders, as many as can complete their folds in time, the one that has begun the fewest."""
        ranking = sorted(self.ranking(), key=self.merit, reverse=True)[:COMPLETED]
        costs = np.cumsum([each.seconds * (self.problem.folds - each.begun) for each in ranking])
        finalists = ranking[: max(1, int((costs <= left * self._processes).sum()))]
        waiting = [c for c in finalists if c.is_resting and c.begun < self.problem.folds and c.seconds <= left]
        return min(waiting, key=lambda contender: contender.begun, default=None)

    def _promising(self, left: float) -> list[str]:
        """Methods by their best contender, if several fits of them have time."""
        quick = (each for each in self.ranking() if each.seconds < left / 8)
        return list(dict.fromkeys(contender.candidate.method for contender in quick))
