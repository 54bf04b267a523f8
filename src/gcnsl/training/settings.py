"""The hyper-parameters of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from gcnsl.options import Log, Options, option
from gcnsl.training.class_weights import check_class_weight
from gcnsl.training.metrics import MetricName

Monitor = Literal["loss", MetricName]
Optimizer = Literal["adam", "sgd"]

SETTLED_EPOCHS = 50
"""How long training goes on after the first epoch within the tolerance."""
LARGE_GRAPH = 1 << 15
"""In larger graphs validation nodes are so many that a short wait tells progress from noise; a long one takes hours."""
LARGE_TOLERANCE, LARGE_INTERVAL = 0.01, 5
"""What ``tolerance`` and ``evaluate_every`` are there, unless they are given."""


@dataclass(frozen=True)
class StageSettings(Options):
    """Hyper-parameters that every method has: how its best epoch is chosen, and what each class weighs.

    An epoch is one step of whatever a method repeats. For a network it is a training step; for others it may be some
    rounds of boosting, a step of propagation, or another penalty on the weights.
    """

    epochs: int = option(800, "Maximum number of epochs.", least=1)
    patience: int = option(200, "Number of epochs without improvement after which training stops.", least=1)
    monitor: Monitor = option(
        "loss", "What has to improve on the validation nodes; between equal values of a metric, the loss decides."
    )
    class_weight: str | None = option(
        None, "Weights of the classes in the loss: none, balanced (all classes count the same), or such as yes=5,no=1."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_weight", check_class_weight(self.class_weight))
        super().__post_init__()


@dataclass(frozen=True)
class TrainingSettings(StageSettings):
    """Hyper-parameters of training by gradient descent, which every network has."""

    lr: float = option(0.01, "Learning rate.", above=0, search=Log(0.001, 0.05))
    weight_decay: float = option(5e-4, "L2 penalty on the weights.", least=0, search=Log(1e-6, 5e-3))
    optimizer: Optimizer = option("adam", "The optimizer.")
    plateau_factor: float | None = option(
        None, "Factor for the learning rate after a plateau; none for a constant rate.", above=0, below=1
    )
    plateau_patience: int = option(50, "Number of epochs without improvement before the rate is reduced.", least=1)
    tolerance: float | None = option(
        None,
        f"Training also ends {SETTLED_EPOCHS} epochs after the first one whose validation loss (or metric) is this "
        f"close to the best. 0 turns this off; none is {LARGE_TOLERANCE} in graphs of more than {LARGE_GRAPH:,} nodes "
        "and 0 in others.",
        least=0,
    )
    evaluate_every: int | None = option(
        None,
        "Number of epochs from one evaluation to the next; the first and the last epoch are evaluated, too. Only "
        "evaluated epochs can be the best. None is "
        f"{LARGE_INTERVAL} in graphs of more than {LARGE_GRAPH:,} nodes and 1 in others.",
        least=1,
    )

    def for_nodes(self, number: int) -> TrainingSettings:
        """The same settings with the tolerance and the evaluations that they have in a graph of so many nodes."""
        tolerance, interval = (LARGE_TOLERANCE, LARGE_INTERVAL) if number > LARGE_GRAPH else (0.0, 1)
        return replace(
            self,
            tolerance=tolerance if self.tolerance is None else self.tolerance,
            evaluate_every=self.evaluate_every or interval,
        )

    def evaluates(self, epoch: int) -> bool:
        """Whether the epoch of this number is evaluated: the first one, every so many, and the last one."""
        return epoch in (1, self.epochs) or epoch % (self.evaluate_every or 1) == 0
