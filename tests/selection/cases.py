"""Small problems, and fits of them that were never trained."""

import numpy as np
import torch

from gcnsl import synthetic
from gcnsl.errors import GcnslError
from gcnsl.selection import tournament
from gcnsl.selection.auto_settings import AutoSettings
from gcnsl.selection.candidates import Candidate
from gcnsl.selection.journal import FoldFit
from gcnsl.selection.learning_problem import Problem, make_problem
from gcnsl.workers.job_pool import Done


def small_problem(*, n: int = 60, held_back: int = 12, **options) -> Problem:
    """Three classes; the labels of the first nodes are not known, and every fourth node is for validation."""
    data = synthetic(n=n, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9)
    data.class_names = ["a", "b", "c"]
    known, every_fourth = torch.arange(n) >= held_back, torch.arange(n) % 4 == 0
    settings = AutoSettings(**options)
    return make_problem(data, known & ~every_fourth, known & every_fourth, settings, seed=0, device="cpu")


def fake_fit(problem: Problem, candidate: Candidate, fold: int, *, skill: float, seconds: float = 1.0) -> FoldFit:
    """A fit that is right about each node with this probability, and then sure of it."""
    generator = np.random.default_rng([fold, *candidate.name.encode()])
    n, classes = problem.graph.num_nodes, len(problem.graph.class_names)
    truth = problem.graph.y.clamp(min=0).numpy()
    guess = np.where(generator.random(n) < skill, truth, (truth + 1) % classes)
    probabilities = np.full((n, classes), 0.1, dtype=np.float32)
    probabilities[np.arange(n), guess] = 0.8
    return FoldFit(candidate, fold, seconds, 0.0, seconds, probabilities)


class PoolHere:
    """Has what :class:`gcnsl.workers.job_pool.JobPool` has, but makes its calls in this process."""

    def __init__(self, call, context, *, processes: int) -> None:
        self._call, self._context, self.running = call, context, []

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to stop."""

    @property
    def has_room(self) -> bool:
        return not self.running

    def submit(self, item, *, seconds: float) -> None:
        assert seconds > item.seconds
        self.running.append(item)

    def wait(self, seconds: float) -> list[Done]:
        item = self.running.pop()
        try:
            return [Done(item, self._call(self._context, item))]
        except (GcnslError, MemoryError) as error:
            return [Done(item, error=error)]


QUICK = [
    Candidate("label propagation", "label-propagation"),
    Candidate("logistic regression", "logistic", {"hops": 1}),
    Candidate("MLP", "mlp", {"epochs": 8, "hidden_channels": 8}),
    Candidate("GCN", "gcn", {"epochs": 8, "hidden_channels": 8}),
]


def make_quick(monkeypatch) -> None:
    """Let a selection try four small models, in this process."""
    monkeypatch.setattr(tournament, "JobPool", PoolHere)
    monkeypatch.setattr(tournament, "portfolio", lambda graph: QUICK)
