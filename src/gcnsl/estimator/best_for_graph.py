"""``method="auto"``: the best ensemble for a checked graph, or one model in its place."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.errors import Interrupted
from gcnsl.methods import Fitted
from gcnsl.selection import AutoSettings, Blend, Progress, Selected, select
from gcnsl.selection.distillation import distil
from gcnsl.selection.leaderboard import with_test
from gcnsl.selection.learning_problem import make_problem
from gcnsl.workers.executor import Executor

FOR_DISTILLATION = 0.2
"""Share of the time that is kept for distillation, if it is asked for."""


@dataclass(frozen=True)
class Found:
    """What predicts from now on, and all that was tried."""

    fitted: Fitted | Blend
    leaderboard: pd.DataFrame


def select_for_graph(
    graph: Data,
    train_mask: Tensor,
    val_mask: Tensor,
    settings: AutoSettings,
    *,
    test_mask: Tensor | None,
    seed: int,
    device: str,
    minutes: float | None,
    checkpoint: str | os.PathLike[str] | None,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[Found | None, Interrupted | None]:
    """Find the best model for a graph, see :func:`gcnsl.selection.select`.

    Returns:
        What was found, ``None`` if not even one model was finished; and the interruption, if there was one.
    """
    minutes = settings.effort.minutes if minutes is None else minutes
    problem = make_problem(graph, train_mask, val_mask, settings, seed=seed, device=device)
    known, interruption = copy.copy(graph), None
    known.y = torch.where(train_mask | val_mask, graph.y, UNLABELLED)
    before = minutes * (1 if settings.distil is None else 1 - FOR_DISTILLATION)
    try:
        selected: Selected | None = select(
            problem, settings, known, minutes=before, checkpoint=checkpoint, executor=executor, on_progress=on_progress
        )
    except Interrupted as error:
        selected, interruption = error.so_far, error
    if selected is None:
        return None, interruption
    fitted: Fitted | Blend = selected.blend
    if interruption is None and settings.distil is not None:
        left = max(FOR_DISTILLATION / 2 * minutes, minutes - selected.blend.history.seconds / 60)
        fitted = distil(selected.blend, settings.distil, train_mask, val_mask, minutes=left)
    elif settings.single:
        fitted = selected.blend.members[0].fits[0]
    table = selected.leaderboard
    if test_mask is not None and test_mask.any():  # all choices are made by now
        tested = test_mask.numpy()
        probabilities = {name: values[tested] for name, values in selected.probabilities.items()}
        table = with_test(table, probabilities, graph.y.numpy()[tested])
    return Found(fitted, table), interruption
