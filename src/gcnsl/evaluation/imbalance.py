"""Whether some classes are so frequent, or so rare, that accuracy says little."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED

FREQUENT = 2 / 3
"""A class with at least this share of the labelled nodes is remarked on."""
RARE = 1 / 10
"""So is a class with a smaller share than this of the most frequent class's nodes."""


class Imbalance(NamedTuple):
    """What is uneven, in a few words, and the metric to look at instead of accuracy."""

    reason: str
    metric: str


def find_imbalance(y: Tensor, class_names: Sequence[str]) -> Imbalance | None:
    """Look at the class numbers of all nodes (n), -1 for unknown; ``None`` if the classes are even enough."""
    counts = torch.bincount(y[y != UNLABELLED], minlength=len(class_names))
    if not counts.any():
        return None
    most, least = int(counts.argmax()), int(torch.where(counts > 0, counts, counts.max()).argmin())
    share = counts / counts.sum()
    metric = "roc-auc" if len(class_names) == 2 else "balanced-accuracy"
    if share[most] >= FREQUENT:
        return Imbalance(f"{share[most]:.0%} of the labelled nodes are {class_names[most]!r}", metric)
    if counts[least] < RARE * counts[most]:
        return Imbalance(f"only {share[least]:.1%} of the labelled nodes are {class_names[least]!r}", metric)
    return None
