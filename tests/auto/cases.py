"""Small problems, and fits of them that were never trained."""

import math
from dataclasses import replace

import numpy as np
import torch

from gcnsl import synthetic
from gcnsl.auto import selection
from gcnsl.auto.auto_settings import EFFORTS, AutoSettings, Effort
from gcnsl.auto.candidates import Candidate, Problem, make_problem
from gcnsl.auto.journal import Fit, Journal, fold_trainer


def small_problem(*, n: int = 60, held_back: int = 12, **options) -> Problem:
    """Three classes; the labels of the first nodes are not known, and every fourth node is for validation."""
    data = synthetic(n=n, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9)
    data.class_names = ["a", "b", "c"]
    known, every_fourth = torch.arange(n) >= held_back, torch.arange(n) % 4 == 0
    settings = AutoSettings(**options)
    return make_problem(data, known & ~every_fourth, known & every_fourth, settings, seed=0, device="cpu")


def fake_fit(
    problem: Problem, candidate: Candidate, fold: int, *, skill: float, seconds: float = 1.0, least: float = 0.0
) -> Fit:
    """A fit that is right about each node with this probability, and then sure of it."""
    generator = np.random.default_rng([fold, *candidate.name.encode()])
    n, classes = problem.graph.num_nodes, len(problem.graph.class_names)
    truth = problem.graph.y.clamp(min=0).numpy()
    guess = np.where(generator.random(n) < skill, truth, (truth + 1) % classes)
    probabilities = np.full((n, classes), 0.1, dtype=np.float32)
    probabilities[np.arange(n), guess] = 0.8
    return Fit(candidate, fold, seconds, 0.0, probabilities, elapsed=seconds, least_seconds=least)


def fitted(
    problem: Problem, journal: Journal, candidate: Candidate, fold: int, *, seconds: float = 60.0, elapsed: float = 0.0
) -> Fit:
    """Train and keep it, as a selection does."""
    fit, model = fold_trainer(problem)(problem.job(candidate, fold, seconds=seconds, limit=60.0))
    fit = replace(fit, elapsed=elapsed)
    journal.write(fit, model)
    return fit


QUICK = [
    Candidate("label propagation", "label-propagation"),
    Candidate("logistic regression", "logistic", {"hops": 1}),
    Candidate("MLP", "mlp", {"epochs": 8, "hidden_channels": 8}),
    Candidate("GCN", "gcn", {"epochs": 8, "hidden_channels": 8}),
]


def make_quick(monkeypatch) -> None:
    """Let a selection try four small models, in this process."""
    monkeypatch.setattr(selection, "STARTING_PAYS", math.inf)
    monkeypatch.setattr(selection, "portfolio", lambda graph: QUICK)
    monkeypatch.setitem(EFFORTS, "fast", Effort(1, 4, 0))
