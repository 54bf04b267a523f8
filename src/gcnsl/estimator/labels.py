"""From the caller's labels, of any type, to class numbers and back; which labelled nodes are for validation."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.errors import InputError
from gcnsl.graph import UNLABELLED
from gcnsl.graph.checks import encode_labels


def read_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The labels as an array of the caller's values, and which nodes have one.

    A node is without a label where there is -1, ``None`` or NaN; also ``"-1"``, which NumPy makes of -1 among names.
    """
    values = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: give one label for each node")
    if values.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        values = np.array([*y, None], dtype=object)[:-1]  # NumPy would have made texts of all, of NaN too
    if values.dtype.kind not in "OU":
        return values, ~(pd.isna(values) | (values == UNLABELLED))
    missing = pd.isna(values)
    values = values.astype(object)
    values[missing] = UNLABELLED
    return values, ~(missing | (values == UNLABELLED) | (values == str(UNLABELLED)))


def encode(y: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Class numbers, -1 where there is no label, and the classes in sorted order, of the caller's type."""
    values, labelled = read_labels(y)
    if not labelled.any():
        raise InputError(f"y has no label among {len(values)} entries: give labels of two or more classes")
    numbers = np.full(len(values), UNLABELLED, dtype=np.int64)
    numbers[labelled], _ = encode_labels(values[labelled])
    _, first = np.unique(numbers[labelled], return_index=True)
    classes = np.array(values[labelled][first].tolist())
    return numbers, classes.astype(np.int64) if classes.dtype.kind == "f" else classes


def draw_validation(numbers: NDArray[np.int64], fraction: float, *, seed: int) -> NDArray[np.bool_]:
    """A share of the labelled nodes of each class, which leaves every class a training node."""
    if not 0 < fraction < 1:
        raise InputError(
            f"validation_fraction({fraction}) must be between 0 and 1: it is a share of the labelled nodes"
        )
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(numbers), dtype=bool)
    for c in range(int(numbers.max()) + 1):
        nodes = generator.permutation(np.flatnonzero(numbers == c))
        chosen[nodes[: min(round(fraction * len(nodes)), len(nodes) - 1)]] = True
    if not chosen.any():
        raise InputError(
            f"validation_fraction({fraction}) of {int((numbers != UNLABELLED).sum())} labelled nodes leaves none for "
            "validation: give more labels, a larger share, or val_mask"
        )
    return chosen
