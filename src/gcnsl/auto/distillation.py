"""One model in place of an ensemble: it learns what the ensemble predicts."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.auto.candidates import Candidate
from gcnsl.auto.fold_fit import method_for
from gcnsl.auto.learning_problem import Problem
from gcnsl.checks import UNLABELLED
from gcnsl.methods import Fitted, fit, prepare
from gcnsl.training import choose_device


def distil(problem: Problem, graph: Data, said: Tensor, method: str, *, minutes: float | None = None) -> Fitted:
    """Train a method on all nodes but those of the first fold, which decide when to stop.

    Args:
        problem: What the ensemble has learned.
        graph: Its graph with all that predictions need.
        said: The classes that the ensemble predicts (n), as far as it can without the labels of the first fold. Nodes
            without a known label are taught to be of these.
        method: Name of the method.
        minutes: Time to do it; ``None`` for as long as it takes. One epoch is always made.
    """
    began, (_, val_mask) = time.perf_counter(), problem.masks(0)
    taught = copy.copy(graph)
    taught.y = torch.where(graph.y == UNLABELLED, said, graph.y)
    options: dict[str, Any] = {"rows": problem.learned, "seed": problem.seed, "device": choose_device(problem.device)}
    student = prepare(method_for(problem, Candidate(method, method)), taught, **options)
    left = None if minutes is None else max(0.0, minutes - (time.perf_counter() - began) / 60)
    fitted = fit(student, train_mask=~val_mask, val_mask=val_mask, seed=problem.seed, minutes=left)
    return Fitted(replace(student, graph=graph), fitted.model, fitted.history)
