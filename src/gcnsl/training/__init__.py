"""Training with early stopping, checkpoints and seeds: one loop for every network. It knows nothing about datasets."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.execution import choose_device, seeded
    from gcnsl.training.history import Epoch, History
    from gcnsl.training.loop import Enough, train
    from gcnsl.training.metrics import METRICS, choose_metric, measure
    from gcnsl.training.objective import predict_logits
    from gcnsl.training.settings import StageSettings, TrainingSettings
    from gcnsl.training.state import Checkpoint
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "METRICS",
    "Checkpoint",
    "Enough",
    "Epoch",
    "History",
    "StageSettings",
    "TrainingSettings",
    "choose_device",
    "choose_metric",
    "measure",
    "predict_logits",
    "seeded",
    "train",
]
