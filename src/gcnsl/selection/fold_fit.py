"""One fit: a candidate on one fold, as a call that can be made in any process and whose result is a file."""

from __future__ import annotations

import time
from typing import NamedTuple

from gcnsl.checks import LARGEST
from gcnsl.methods import Method, Prepared, fit, prepare
from gcnsl.selection.candidates import Candidate
from gcnsl.selection.journal import FoldFit, Journal
from gcnsl.selection.learning_problem import Problem
from gcnsl.training import Checkpoint, choose_device


class FoldJob(NamedTuple):
    """Train a candidate on a fold, or continue with it.

    Attributes:
        candidate, fold: What to train.
        seconds: Time to do it; what is reached then counts.
        elapsed: Time that the whole selection had taken before.
        spent: Time that was spent on this fit before.
    """

    candidate: Candidate
    fold: int
    seconds: float
    elapsed: float
    spent: float = 0.0


class FoldFitter:
    """Trains candidates on the folds of a problem and writes what comes of it into a journal.

    The inputs of a candidate's model are the same in all folds, as they are fitted to all nodes that may be learned
    from. Those of the last candidate are kept for its next fold.
    """

    def __init__(self, problem: Problem, journal: Journal) -> None:
        self._problem, self._journal = problem, journal
        self._last: Prepared | None = None

    def __call__(self, job: FoldJob) -> FoldFit:
        """Train a candidate on a fold."""
        began, problem = time.perf_counter(), self._problem
        prepared = self._prepared(method_for(problem, job.candidate))
        left = max(0.0, job.seconds - (time.perf_counter() - began)) / 60
        train_mask, val_mask = problem.masks(job.fold)
        run_file = self._journal.run_file(job.candidate, job.fold)
        fitted = fit(
            prepared,
            train_mask=train_mask,
            val_mask=val_mask,
            seed=problem.seed + job.fold,
            minutes=left,
            checkpoint=Checkpoint(run_file, every=LARGEST),
        )
        trained = time.perf_counter()
        probabilities = fitted.logits().softmax(dim=1)
        done = time.perf_counter()
        found = FoldFit(
            candidate=job.candidate,
            fold=job.fold,
            seconds=job.spent + trained - began,
            predict_seconds=done - trained,
            elapsed=job.elapsed + done - began,
            probabilities=probabilities.numpy(),
            is_cut=fitted.history.stopped == "minutes" and run_file.exists(),
        )
        self._journal.write(found, fitted)
        if not found.is_cut:
            run_file.unlink(missing_ok=True)
        return found

    def _prepared(self, method: Method) -> Prepared:
        if self._last is None or self._last.method != method:
            self._last = None  # not both at once in memory
            device, problem = choose_device(self._problem.device), self._problem
            self._last = prepare(method, problem.graph, rows=problem.learned, seed=problem.seed, device=device)
        return self._last


def method_for(problem: Problem, candidate: Candidate) -> Method:
    """The candidate's method with the problem's class weights; epochs are chosen by its metric.

    Accuracy is an exception: where it is wanted, each method chooses epochs as its literature does.
    """
    monitor = {} if problem.metric == "accuracy" else {"monitor": problem.metric}
    return candidate.resolved.with_options(class_weight=problem.class_weight, **monitor)


def call_fitter(fitter: FoldFitter, job: FoldJob) -> FoldFit:
    """For :class:`gcnsl.workers.job_pool.JobPool`."""
    return fitter(job)
