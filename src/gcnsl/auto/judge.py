"""How good probabilities are on labelled nodes: by a metric or, on few nodes, by the log loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gcnsl.training.metrics import METRICS, Floats, Ints

FEW = 300
"""On fewer nodes, metrics that only count predictions are led by chance, and the log loss compares better."""
COUNTING = ("accuracy", "balanced-accuracy", "macro-f1")
SMALLEST = 1e-4
"""A wrong prediction costs no more than one with this probability: a few should not decide by themselves."""


class Merit(NamedTuple):
    """What is compared: more is better, and the second value decides between equal first ones."""

    first: float
    second: float


class Judge(NamedTuple):
    """Compares by a metric, a name of :data:`gcnsl.training.METRICS`."""

    metric: str

    def value(self, probabilities: Floats, y: Ints) -> float:
        """The metric of nodes with these probabilities (v × C) and class numbers (v)."""
        return METRICS[self.metric](probabilities, y)

    def leading(self, nodes: int) -> str:
        """The name of the metric that compares on so many nodes."""
        return "log-loss" if nodes < FEW and self.metric in COUNTING else self.metric

    def merit(self, probabilities: Floats, y: Ints) -> Merit:
        """The metric and then the log loss, or the reverse where there are few nodes."""
        sharpness = -_bounded_log_loss(probabilities, y)
        if self.metric == "log-loss":
            return Merit(sharpness, 0.0)
        gain = METRICS[self.metric].gain(self.value(probabilities, y))
        gain = -math.inf if math.isnan(gain) else gain
        return Merit(gain, sharpness) if self.leading(len(y)) == self.metric else Merit(sharpness, gain)


def _bounded_log_loss(probabilities: Floats, y: Ints) -> float:
    own = probabilities[np.arange(len(y)), y].astype(np.float64)
    return float(-np.log(own.clip(min=SMALLEST)).mean()) if np.isfinite(own).all() else math.inf
