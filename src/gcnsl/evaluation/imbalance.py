"""Whether one class is so frequent that accuracy says little, and which metric says more."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED

FREQUENT = 2 / 3
"""A class with at least this share of the labelled nodes: always to predict it gets as many right."""


class Imbalance(NamedTuple):
    """What is uneven, in a few words, and the metric to look at instead of accuracy."""

    reason: str
    metric: str


def find_imbalance(y: Tensor, class_names: Sequence[Any]) -> Imbalance | None:
    """Look at the class numbers of all nodes (n), -1 for unknown; ``None`` if accuracy tells enough.

    With two classes the metric is the average precision of the rarer one, otherwise the balanced accuracy.
    """
    counts = torch.bincount(y[y != UNLABELLED], minlength=len(class_names))
    occurring = int((counts > 0).sum())
    if occurring < 2 or counts.max() < FREQUENT * counts.sum():
        return None
    share, name = counts.max() / counts.sum(), class_names[int(counts.argmax())]
    metric = "average-precision" if occurring == 2 else "balanced-accuracy"
    return Imbalance(f"{share:.0%} of the labelled nodes are {name!r}", metric)
