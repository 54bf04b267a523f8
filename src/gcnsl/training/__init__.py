"""Training with early stopping, checkpoints and seeds: one loop for every network. It knows nothing about datasets."""

from gcnsl.training.checkpoint import Checkpoint
from gcnsl.training.devices import choose_device, seeded
from gcnsl.training.history import Epoch, History
from gcnsl.training.loop import train
from gcnsl.training.metrics import METRICS, measure
from gcnsl.training.passes import predict_logits
from gcnsl.training.settings import StageSettings, TrainingSettings
from gcnsl.training.stages import fit_in_stages

__all__ = [
    "METRICS",
    "Checkpoint",
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
