"""Training with early stopping, checkpoints and seeds: one loop for every network. It knows nothing about datasets."""

from typing import TYPE_CHECKING

from gcnsl.lazy import lazy

if TYPE_CHECKING:
    from gcnsl.training.checkpoint import Checkpoint, CutRun
    from gcnsl.training.devices import choose_device, seeded
    from gcnsl.training.history import Epoch, History
    from gcnsl.training.loop import train
    from gcnsl.training.metrics import METRICS, measure
    from gcnsl.training.passes import predict_logits
    from gcnsl.training.settings import StageSettings, TrainingSettings
    from gcnsl.training.stages import fit_in_stages
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "METRICS",
    "Checkpoint",
    "CutRun",
    "Epoch",
    "History",
    "StageSettings",
    "TrainingSettings",
    "choose_device",
    "fit_in_stages",
    "measure",
    "predict_logits",
    "seeded",
    "train",
]
