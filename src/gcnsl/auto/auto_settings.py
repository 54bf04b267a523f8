"""The options of ``method="auto"``."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from gcnsl.checks import check_choice
from gcnsl.methods.registry import ALIASES, METHODS, find_method
from gcnsl.options import Options, option, redeclared
from gcnsl.training.metrics import MetricName
from gcnsl.training.settings import StageSettings, check_class_weight

AUTO = "auto"
"""What stands in place of a method's name."""
Quality = Literal["fast", "good", "best"]


class Effort(NamedTuple):
    """What a quality means: the time budget, the folds of the labelled nodes, and how many settings are proposed."""

    minutes: float
    folds: int
    trials: int


EFFORTS: dict[Quality, Effort] = {"fast": Effort(1, 4, 20), "good": Effort(5, 5, 200), "best": Effort(30, 8, 1000)}


@dataclass(frozen=True)
class AutoSettings(Options):
    """How the best model is looked for."""

    quality: Quality = option(
        "good",
        "How much is tried: the methods with their defaults and few other hyper-parameters (fast), more (good), or "
        "many and more folds (best). Without a time budget, 1, 5 or 30 minutes.",
    )
    metric: MetricName | None = option(
        None,
        "What the models are compared by. By default the data decide: accuracy; average-precision if at most 20% of "
        "the labelled nodes are of the rarer of two classes; macro-f1 if at least 60% are of one of more classes.",
    )
    class_weight: str | None = redeclared(StageSettings, "class_weight", None)
    keep_validation: bool = option(
        False,
        "Choose by the given validation nodes and never learn from them. Otherwise training and validation nodes are "
        "one set, cut into folds that take turns in validation.",
    )
    single: bool = option(False, "Keep the best single model instead of an ensemble, where speed matters.")
    distil: str | None = option(None, "Keep one model of this method that has learned what the ensemble predicts.")
    processes: int | None = option(
        None, "Models that are trained at the same time; none for one on each core.", least=1
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_weight", check_class_weight(self.class_weight))
        super().__post_init__()
        if self.distil is not None:
            check_choice("distil", self.distil, [*METHODS, *ALIASES])
            object.__setattr__(self, "distil", find_method(self.distil).name)

    @property
    def effort(self) -> Effort:
        """What the quality means."""
        return EFFORTS[self.quality]
