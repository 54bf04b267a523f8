"""The baseline that every comparison shows: the class that is most frequent among the training nodes, for all nodes."""

import numpy as np
import torch
from torch import Tensor

from gcnsl.training import measure

MAJORITY = "majority"
"""What the baseline is called beside the methods."""


def measure_majority(y: Tensor, num_classes: int, masks: dict[str, Tensor]) -> dict[str, float]:
    """All metrics on the test nodes, if every node has the training nodes' shares of the classes as probabilities.

    Args:
        y: Class numbers (n), -1 for unknown.
        num_classes: C.
        masks: Those of a split (n each), by part.
    """
    truth = y[masks["test"]].numpy()
    counts = torch.bincount(y[masks["train"]], minlength=num_classes).numpy()
    return measure(np.tile(counts / counts.sum(), (len(truth), 1)), truth)
