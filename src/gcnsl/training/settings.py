"""The hyper-parameters of training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from gcnsl.checks import check_number
from gcnsl.errors import ArgumentError
from gcnsl.options import NONE, Log, Options, option
from gcnsl.training.metrics import MetricName

if TYPE_CHECKING:
    from torch import Tensor

Monitor = Literal["loss", MetricName]
Optimizer = Literal["adam", "sgd"]

SETTLED_EPOCHS = 50
"""How long training goes on after the first epoch within the tolerance."""
LARGE_GRAPH = 1 << 15
"""In larger graphs validation nodes are so many that a short wait tells progress from noise; a long one takes hours."""
LARGE_TOLERANCE, LARGE_INTERVAL = 0.01, 5
"""What ``tolerance`` and ``evaluate_every`` are there, unless they are given."""
BALANCED = "balanced"
_RULE = "must be none, balanced, or positive weights by class, such as yes=5,no=1"


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

    def for_nodes(self, number: int) -> StageSettings:
        """The same settings with the values that they have in a graph of so many nodes."""
        return self

    def evaluates(self, epoch: int) -> bool:
        """Whether the epoch of this number is evaluated."""
        return True


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
        tolerance = tolerance if self.tolerance is None else self.tolerance
        return replace(self, tolerance=tolerance, evaluate_every=self.evaluate_every or interval)

    def evaluates(self, epoch: int) -> bool:
        """Whether the epoch of this number is evaluated: the first one, every so many, and the last one."""
        return epoch in (1, self.epochs) or epoch % (self.evaluate_every or 1) == 0


def check_class_weight(value: Any) -> str | None:
    """The option in its one form, from ``None``, ``"balanced"``, a table ``{"yes": 5}`` or a text ``"yes=5,no=1"``."""
    if value is None or (isinstance(value, str) and value in (NONE, BALANCED)):
        return None if value == NONE else value
    table = _read(value) if isinstance(value, str) else value
    if not isinstance(table, Mapping) or not table:
        raise ArgumentError("class_weight", value, _RULE)
    try:
        weights = {str(name): check_number("class_weight", weight, above=0) for name, weight in table.items()}
    except ArgumentError as error:
        raise ArgumentError("class_weight", value, _RULE) from error
    return json.dumps(weights, sort_keys=True, ensure_ascii=False)


def class_weights(option: str | None, y: Tensor, class_names: Sequence[Any]) -> Tensor | None:
    """The weight of each class (C), or ``None`` if all weigh the same.

    ``balanced`` weights a class by n / (C · its number of nodes), as in scikit-learn. Classes without a node, and those
    that a table does not name, have the weight 1.

    Args:
        option: As :func:`check_class_weight` returns it.
        y: Class numbers of the training nodes.
        class_names: The names of the C classes.
    """
    import torch  # here, because the option is checked where it must not take time

    if option is None:
        return None
    names, weights = [str(name) for name in class_names], torch.ones(len(class_names))
    if option == BALANCED:
        present, counts = torch.unique(y.cpu(), return_counts=True)
        weights[present] = len(y) / (len(present) * counts)
        return weights
    for name, weight in json.loads(option).items():
        if name not in names:
            raise ArgumentError("class_weight", option, f"names {name!r}; the classes are {', '.join(names)}")
        weights[names.index(name)] = weight
    return weights


def _read(text: str) -> Any:
    """A table as JSON or as ``yes=5,no=1``; nothing if it is neither."""
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        return {name.strip(): float(weight) for name, weight in (part.rsplit("=", 1) for part in text.split(","))}
    except ValueError:
        return None
