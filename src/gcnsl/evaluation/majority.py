"""The baseline that every comparison shows: the class that is most frequent among the training nodes, for all nodes."""

from torch import Tensor

from gcnsl.training.metrics import class_shares, measure

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
    return measure(class_shares(y[masks["train"]].numpy(), num_classes, len(truth)), truth)
