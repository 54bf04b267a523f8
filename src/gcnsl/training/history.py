"""What happened in each epoch, and what follows from it: which one was best, and whether to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gcnsl.training.settings import Monitor, TrainingSettings


@dataclass(frozen=True)
class Epoch:
    """What ``on_epoch`` is told after each epoch.

    Attributes:
        number: Counted from 1, also where a run was resumed.
        train_loss: Of the training step, dropout and all.
        val_loss: Of the validation nodes, after the step.
        accuracy: After the step, by mask: ``"train"``, ``"val"`` and those watched.
        best_epoch: The best so far.
        remaining: Epochs to come at most, should none improve.
        seconds: Since the start, earlier parts of a resumed run included.
    """

    number: int
    train_loss: float
    val_loss: float
    accuracy: Mapping[str, float]
    best_epoch: int
    remaining: int
    seconds: float

    @property
    def improved(self) -> bool:
        """Whether this epoch is the best so far."""
        return self.best_epoch == self.number


@dataclass
class History:
    """A run's values, one an epoch.

    Attributes:
        values: By name: ``train_loss``, ``val_loss``, ``train_accuracy``, ``val_accuracy``, and ``NAME_accuracy`` for
            each mask watched.
        best_epoch: Whose weights the model has now; counted from 1, 0 before the first.
        seconds: Time spent.
        stopped: Why the run ended: ``"patience"``, ``"epochs"``, or ``""`` where it has not.
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

    def append(self, values: Mapping[str, float], monitor: Monitor) -> bool:
        """Add an epoch and tell whether it is the best so far."""
        score = _score(values, monitor)
        improved = not len(self) or score < _score(self.best, monitor)
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)
        if improved:
            self.best_epoch = len(self)
        return improved

    def remaining(self, settings: TrainingSettings) -> int:
        """Epochs to come at most, should none improve."""
        return min(settings.epochs, self.best_epoch + settings.patience) - len(self)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> History:
        """What :meth:`to_dict` gave."""
        return cls(**plain)


def _score(values: Mapping[str, float], monitor: Monitor) -> tuple[float, float]:
    """Smaller is better."""
    return (-values["val_accuracy"] if monitor == "accuracy" else 0.0), values["val_loss"]
