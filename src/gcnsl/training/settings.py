"""How to train, as opposed to what."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from gcnsl.errors import InputError

Monitor = Literal["loss", "accuracy"]
Optimizer = Literal["adam", "sgd"]


@dataclass(frozen=True)
class TrainingSettings:
    """Hyper-parameters of training.

    Args:
        lr: Learning rate.
        weight_decay: L2 penalty, on all parameters unless the model says otherwise (see :func:`gcnsl.training.train`).
        epochs: How many epochs at most.
        patience: Stop after so many epochs without improvement.
        monitor: What improves: the ``"loss"`` of the validation nodes, or their ``"accuracy"``, where of two equal ones
            the smaller loss is better.
        optimizer: ``"adam"`` or ``"sgd"``.
        plateau_factor: Multiply the learning rate by it whenever the monitored value has not improved for more than
            ``plateau_patience`` epochs; ``None`` keeps the rate.
        plateau_patience: See there.
    """

    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 800
    patience: int = 200
    monitor: Monitor = "loss"
    optimizer: Optimizer = "adam"
    plateau_factor: float | None = None
    plateau_patience: int = 50

    def __post_init__(self) -> None:
        for name in ("epochs", "patience", "plateau_patience"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name}({value!r}) must be a whole number >= 1")
        if not _is_number(self.lr) or self.lr <= 0:
            raise InputError(f"lr({self.lr!r}) must be a number > 0")
        if not _is_number(self.weight_decay) or self.weight_decay < 0:
            raise InputError(f"weight_decay({self.weight_decay!r}) must be a number >= 0")
        for name, choices in (("monitor", get_args(Monitor)), ("optimizer", get_args(Optimizer))):
            if getattr(self, name) not in choices:
                raise InputError(f"{name}({getattr(self, name)!r}) must be one of {', '.join(choices)}")
        factor = self.plateau_factor
        if factor is not None and (not _is_number(factor) or not 0 < factor < 1):
            raise InputError(f"plateau_factor({factor!r}) must be between 0 and 1, or None to keep the learning rate")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
