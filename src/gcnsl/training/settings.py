"""How to train, as opposed to what."""

from dataclasses import dataclass
from typing import Literal

from gcnsl.options import Options, option

Monitor = Literal["loss", "accuracy"]
Optimizer = Literal["adam", "sgd"]


@dataclass(frozen=True)
class TrainingSettings(Options):
    """Hyper-parameters of training, the same for every model."""

    lr: float = option(0.01, "Learning rate.", above=0)
    weight_decay: float = option(5e-4, "L2 penalty on the weights.", least=0)
    epochs: int = option(800, "Train for at most so many epochs.", least=1)
    patience: int = option(200, "Stop after so many epochs without improvement.", least=1)
    monitor: Monitor = option(
        "loss", "What has to improve on the validation nodes; of two equal accuracies the smaller loss is better."
    )
    optimizer: Optimizer = option("adam", "The optimizer.")
    plateau_factor: float | None = option(
        None, "Multiply the learning rate by it after a plateau; none keeps the rate.", above=0, below=1
    )
    plateau_patience: int = option(50, "A plateau is more than so many epochs without improvement.", least=1)
