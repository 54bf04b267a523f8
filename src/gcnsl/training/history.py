"""The values of each epoch, which epoch was best, and how many epochs and how much time are left."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gcnsl.checks import check_number
from gcnsl.training.metrics import METRICS
from gcnsl.training.settings import SETTLED_EPOCHS, Monitor, StageSettings, TrainingSettings


@dataclass(frozen=True)
class Epoch:
    """The argument of ``on_epoch``, which is called after each epoch.

    Attributes:
        number: Number of the epoch, counted from 1; a resumed run continues the count.
        train_loss: Loss of the training step, with dropout.
        val_loss: Loss on the validation nodes after the step. If an epoch is not evaluated
            (``TrainingSettings.evaluate_every``), this and what follows are the values of the last one that was.
        accuracy: Accuracy after the step, by mask: ``"train"``, ``"val"`` and those of ``watch``.
        metric: The metric that chooses the best epoch; accuracy if the loss does.
        score: Its value on the validation nodes.
        best_epoch: Number of the best epoch so far.
        remaining: Number of epochs left if none of them improves.
        seconds: Time spent so far, including the earlier parts of a resumed run.
        seconds_left: An estimate of the time left if no epoch improves, from the mean time of the epochs so far.
    """

    number: int
    train_loss: float
    val_loss: float
    accuracy: Mapping[str, float]
    metric: str
    score: float
    best_epoch: int
    remaining: int
    seconds: float
    seconds_left: float

    @property
    def improved(self) -> bool:
        """Whether this epoch is the best so far."""
        return self.best_epoch == self.number

    @property
    def validation(self) -> str:
        """The metric on the validation nodes, in words."""
        return f"validation {self.metric} {METRICS[self.metric].text(self.score)}"


@dataclass
class History:
    """The values of all epochs of a run.

    Attributes:
        values: One value per epoch, by name: ``train_loss``, ``val_loss``, ``train_accuracy``, ``val_accuracy``, and
            ``NAME_accuracy`` for each mask of ``watch``, and ``val_METRIC`` if another metric chooses the best epoch.
            Epochs that are not evaluated have a ``train_loss`` of their own, and otherwise the values of the last one
            that was.
        best_epoch: Number of the best epoch, whose weights the trained model has; 0 before the first epoch.
        seconds: Time spent.
        stopped: Why the run ended: ``"patience"`` (or it has settled), ``"epochs"``, ``"minutes"`` or
            ``"interrupted"``, or ``"complete"`` if the method has no more epochs to offer; ``""`` if it has not ended.
    """

    values: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = 0
    seconds: float = 0.0
    stopped: str = ""

    def __len__(self) -> int:
        return len(self.values.get("val_loss", ()))

    def __getitem__(self, name: str) -> list[float]:
        return self.values[name]

    @property
    def best(self) -> dict[str, float]:
        """The values of the best epoch, by name."""
        return {name: values[self.best_epoch - 1] for name, values in self.values.items()}

    @property
    def last(self) -> dict[str, float]:
        """The values of the last epoch, by name."""
        return {name: values[-1] for name, values in self.values.items()}

    def append(self, values: Mapping[str, float], monitor: Monitor) -> bool:
        """Add an epoch; return whether it is the best so far."""
        score = _score(values, monitor)
        improved = not len(self) or score < _score(self.best, monitor)
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)
        if improved:
            self.best_epoch = len(self)
        return improved

    def remaining(self, settings: StageSettings) -> int:
        """Number of epochs left if none of them improves."""
        last = self.best_epoch + settings.patience
        if isinstance(settings, TrainingSettings) and settings.tolerance and len(self):
            last = min(last, self._first_within(settings.tolerance, settings.monitor) + SETTLED_EPOCHS)
        last = next(number for number in itertools.count(last) if settings.evaluates(number))
        return min(last, settings.epochs) - len(self)

    def _first_within(self, tolerance: float, monitor: Monitor) -> int:
        """Number of the first epoch that is nearly as good as the best."""
        if _monitored(self.best, monitor) == math.inf:  # the metric is not defined, and the loss decides
            monitor = "loss"
        name, enough = f"val_{monitor}", _monitored(self.best, monitor) + tolerance
        values = enumerate(self.values[name], start=1)
        return next(number for number, value in values if _monitored({name: value}, monitor) <= enough)

    def last_epoch(self, masks: Iterable[str], settings: StageSettings, seconds_left: float) -> Epoch:
        """The last epoch, with the accuracy on the nodes of these masks, for ``on_epoch``."""
        values = self.last
        metric = "accuracy" if settings.monitor == "loss" else settings.monitor
        return Epoch(
            number=len(self),
            train_loss=values["train_loss"],
            val_loss=values["val_loss"],
            accuracy={mask: values[f"{mask}_accuracy"] for mask in masks},
            metric=metric,
            score=values[f"val_{metric}"],
            best_epoch=self.best_epoch,
            remaining=self.remaining(settings),
            seconds=self.seconds,
            seconds_left=seconds_left,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> History:
        """The inverse of :meth:`to_dict`."""
        return cls(**plain)


def _score(values: Mapping[str, float], monitor: Monitor) -> tuple[float, float]:
    """What is compared between epochs; smaller is better. If the metric is not defined, the loss decides."""
    return (0.0 if monitor == "loss" else _monitored(values, monitor)), values["val_loss"]


def _monitored(values: Mapping[str, float], monitor: Monitor) -> float:
    """The loss, or the metric so that smaller is better."""
    value = values[f"val_{monitor}"]
    if monitor == "loss":
        return value
    return math.inf if math.isnan(value) else -METRICS[monitor].gain(value)


class TimeBudget:
    """The clock of a run: it starts when the object is made.

    Args:
        minutes: How long the run may take; ``None`` for as long as it needs. The first epoch always fits.
    """

    def __init__(self, minutes: float | None = None) -> None:
        self._seconds = math.inf if minutes is None else 60 * check_number("minutes", minutes, least=0)
        self._began, self.epochs = time.perf_counter(), 0

    def allows(self, epochs: int) -> bool:
        """Whether so many more epochs would end in time, if each takes as long as those so far."""
        elapsed, expected = self._expected(epochs)
        return self.epochs + epochs == 1 or elapsed + expected <= self._seconds

    def seconds_left(self, epochs: int) -> float:
        """An estimate for so many more epochs."""
        elapsed, expected = self._expected(epochs)
        return max(0.0, min(expected, self._seconds - elapsed))

    def _expected(self, epochs: int) -> tuple[float, float]:
        """The seconds so far, and those of so many more epochs."""
        elapsed = time.perf_counter() - self._began
        return elapsed, epochs * elapsed / max(1, self.epochs)
