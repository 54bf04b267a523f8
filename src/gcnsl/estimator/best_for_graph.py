"""``method="auto"``: the best ensemble for a checked graph, or one model in its place."""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto import AutoSettings, Blend, Selected, select
from gcnsl.auto.candidates import Candidate, Problem, make_problem
from gcnsl.auto.selection import with_distilled, with_test
from gcnsl.checks import UNLABELLED
from gcnsl.errors import Interrupted
from gcnsl.graph import encode_columns
from gcnsl.methods import Fitted, fit, prepare
from gcnsl.runs.executor import Executor
from gcnsl.runs.jobs import reason
from gcnsl.training import choose_device

if TYPE_CHECKING:
    from gcnsl.estimator.node_classifier import NodeClassifier

FOR_DISTILLATION = 0.2
"""Share of the time that is kept for distillation, if it is asked for."""
_LOGGER = logging.getLogger("gcnsl")


class DistillationWarning(UserWarning):
    """The model that was to take the place of the ensemble could not be trained."""


def fit_best(
    classifier: NodeClassifier,
    data: Data,
    train_mask: Tensor,
    val_mask: Tensor,
    test_mask: Tensor,
    *,
    minutes: float | None,
    seed: int,
    executor: Executor,
    on_epoch: Callable[[Any], None] | None,
) -> None:
    """Fit a classifier: find the best model for a checked graph, see :func:`gcnsl.auto.select`.

    Labels of test nodes are not looked at before it is chosen. After an interruption, which is raised at the end, it is
    the best of what was finished by then.
    """
    settings, graph = AutoSettings().changed(**classifier.options), encode_columns(data, train_mask | val_mask)
    minutes = settings.effort.minutes if minutes is None else minutes
    problem = make_problem(graph, train_mask, val_mask, settings, seed=seed, device=classifier.device)
    known, interruption = copy.copy(graph), None
    known.y = torch.where(train_mask | val_mask, graph.y, UNLABELLED)
    before = minutes * (1 if settings.distil is None else 1 - FOR_DISTILLATION)
    how: dict[str, Any] = {"checkpoint": classifier.checkpoint, "executor": executor}
    try:
        selected: Selected = select(problem, settings, known, minutes=before, on_progress=on_epoch, **how)
    except Interrupted as error:
        if error.so_far is None:
            raise
        selected, interruption = error.so_far, error
    blend, probabilities, table = selected.blend, selected.probabilities, selected.leaderboard
    fitted: Fitted | Blend = blend
    if settings.single:
        fitted = _in_place_of(blend, blend.members[0].fits[0])
    elif settings.distil is not None and interruption is None:
        left = max(FOR_DISTILLATION / 2 * minutes, minutes - blend.history.seconds / 60)
        fitted, interruption = _distilled(problem, selected, settings.distil, left)
        if isinstance(fitted, Fitted):
            table, own = with_distilled(table, problem, fitted)
            probabilities = probabilities | own
            fitted = _in_place_of(blend, fitted, more=fitted.history.seconds)
    if test_mask.any():  # all choices are made by now
        tested = test_mask.numpy()
        of_tested = {name: values[tested] for name, values in probabilities.items()}
        table = with_test(table, of_tested, graph.y.numpy()[tested])
    train_mask, val_mask = problem.masks(0).values()
    if isinstance(fitted, Blend) and any(len(member.fits) > 1 for member in fitted.members):
        # what is for validation in a fold is learned in others
        train_mask, val_mask = problem.learned, torch.zeros_like(val_mask)
    classifier._keep(fitted, train_mask, val_mask)
    classifier.leaderboard_, classifier.chosen_by_ = table, selected.chosen_by
    if interruption is not None:
        raise interruption


def _distilled(
    problem: Problem, selected: Selected, method: str, minutes: float
) -> tuple[Fitted | Blend, Interrupted | None]:
    """A model in place of the ensemble or, if it fails or is interrupted, the ensemble; and the interruption."""
    blend, said = selected.blend, torch.from_numpy(selected.of_first_fold).argmax(dim=1)
    try:
        return distil(problem, blend.graph, said, method, minutes=minutes), None
    except KeyboardInterrupt:
        blend.history.stopped = "interrupted"
        return blend, Interrupted("interrupted before the ensemble was distilled", selected)
    except Exception as error:
        _LOGGER.debug("%s could not be distilled", method, exc_info=True)
        told = f"{method} could not learn from the ensemble, which is kept instead: {reason(error)}"
        warnings.warn(told, DistillationWarning, stacklevel=2)
        return blend, None


def distil(problem: Problem, graph: Data, said: Tensor, method: str, *, minutes: float) -> Fitted:
    """Train a method on what the ensemble has ``said`` (n) of nodes without a known label, and on all labels.

    The first fold decides when to stop: its labels are not learned from, and ``said`` does without them if it can.
    """
    began, val_mask = time.perf_counter(), problem.masks(0)["val"]
    taught = copy.copy(graph)
    taught.y = torch.where(graph.y == UNLABELLED, said, graph.y)
    options: dict[str, Any] = {"rows": problem.learned, "seed": problem.seed, "device": choose_device(problem.device)}
    student = prepare(problem.method(Candidate(method, method)), taught, **options)
    left = max(0.0, minutes - (time.perf_counter() - began) / 60)
    fitted = fit(student, train_mask=~val_mask, val_mask=val_mask, seed=problem.seed, minutes=left)
    return Fitted(replace(student, graph=graph), fitted.model, fitted.history)


def _in_place_of(blend: Blend, fitted: Fitted, more: float = 0.0) -> Fitted:
    """A model whose history has the time of the whole selection and some more and, if it was interrupted, says so."""
    stopped = "interrupted" if blend.history.stopped == "interrupted" else fitted.history.stopped
    history = replace(fitted.history, seconds=blend.history.seconds + more, stopped=stopped)
    return replace(fitted, history=history)
