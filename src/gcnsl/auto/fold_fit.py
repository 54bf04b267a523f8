"""Train a candidate on one fold, in any worker: it stores nothing, and the process that asked keeps the result."""

from __future__ import annotations

import time
import traceback
from typing import Any, NamedTuple

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.journal import FoldFit, Trained, packed
from gcnsl.auto.learning_problem import Problem
from gcnsl.errors import GcnslError, TrainingDiverged, one_line
from gcnsl.methods import Method, Prepared, fit, prepare
from gcnsl.runs.executor import check_wanted
from gcnsl.training import CutRun, choose_device

_NO_MEMORY = ("out of memory", "allocate memory", "bad_alloc")
"""What torch says on a GPU and on a CPU, and what is left of the errors of other libraries."""


class Failed(NamedTuple):
    """Why a fit has failed: in a few words, and the traceback."""

    why: str
    traceback: str


class FoldJob(NamedTuple):
    """Train a candidate on a fold, or continue with it.

    Attributes:
        candidate, fold: What to train.
        seconds: Time to do it; what is reached then counts.
        limit: Time after which it is given up, if it has not ended.
        elapsed: Time that the whole selection had taken before.
        spent: Time that was spent on this fit before.
        run: The state in which that was cut.
    """

    candidate: Candidate
    fold: int
    seconds: float
    limit: float
    elapsed: float
    spent: float = 0.0
    run: bytes | None = None


class FoldFitter:
    """Trains candidates on the folds of a problem.

    The inputs of a candidate's model are the same in all folds, as they are fitted to all nodes that may be learned
    from. Those of the last candidate are kept for its next fold, but they are not pickled with it.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._last: Prepared | None = None

    def __call__(self, job: FoldJob) -> Trained | Failed:
        """Train a candidate on a fold; if it fails, for whatever reason, say why."""
        try:
            return self._train(job)
        except Exception as error:
            return Failed(reason(error), traceback.format_exc())

    def _train(self, job: FoldJob) -> Trained:
        began, problem, run = time.perf_counter(), self._problem, CutRun(content=job.run)
        prepared = self._prepared(method_for(problem, job.candidate))
        ready = time.perf_counter()
        train_mask, val_mask = problem.masks(job.fold)
        fitted = fit(
            prepared,
            train_mask=train_mask,
            val_mask=val_mask,
            seed=problem.seed + job.fold,
            minutes=max(0.0, job.seconds - (ready - began)) / 60,
            on_epoch=check_wanted,
            checkpoint=run,
        )
        trained = time.perf_counter()
        probabilities = fitted.logits().softmax(dim=1)
        done = time.perf_counter()
        found = FoldFit(
            candidate=job.candidate,
            fold=job.fold,
            seconds=job.spent + trained - began,
            least_seconds=ready - began + (trained - ready) / len(fitted.history) + done - trained,
            predict_seconds=done - trained,
            elapsed=job.elapsed + done - began,
            probabilities=probabilities.numpy(),
            is_cut=fitted.history.stopped == "minutes" and run.content is not None,
        )
        return Trained(packed(found, fitted, problem.identity), run.content if found.is_cut else None)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def _prepared(self, method: Method) -> Prepared:
        if self._last is None or self._last.method != method:
            self._last = None  # not both at once in memory
            device, problem = choose_device(self._problem.device), self._problem
            self._last = prepare(method, problem.graph, rows=problem.learned, seed=problem.seed, device=device)
        return self._last


def reason(error: Exception) -> str:
    """What has failed, in a few words."""
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return "not enough memory"
    if isinstance(error, TrainingDiverged):
        return "training diverged"
    return one_line(str(error) if isinstance(error, GcnslError) else f"{type(error).__name__}: {error}", 160)


def method_for(problem: Problem, candidate: Candidate) -> Method:
    """The candidate's method with the problem's class weights; epochs are chosen by its metric.

    Accuracy is an exception: where it is wanted, each method chooses epochs as its literature does.
    """
    monitor = {} if problem.metric == "accuracy" else {"monitor": problem.metric}
    return candidate.resolved.with_options(class_weight=problem.class_weight, **monitor)
