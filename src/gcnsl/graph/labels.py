"""Node labels of any type: which nodes have one, and the number of each class.

A node is unlabelled where its label is -1, ``None`` or NaN. The string ``"-1"`` means the same, because NumPy and text
files turn a -1 among names into it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.graph.arrays import as_array


def read_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the labels as an array of the caller's values, and a mask of the labelled nodes (n each)."""
    values = as_array(y, "y")
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: give one label for each node")
    if values.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        values = np.array([*y, None], dtype=object)[:-1]  # NumPy would turn all into strings, even NaN
    if values.dtype.kind not in "OU":
        return values, ~(pd.isna(values) | (values == UNLABELLED))
    missing = pd.isna(values)
    values = values.astype(object)
    values[missing] = UNLABELLED
    return values, ~(missing | (values == UNLABELLED) | (values == str(UNLABELLED)))


def encode_labels(y: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Encode labels, which are integers, strings or both, as class numbers.

    Returns the class numbers (n), -1 for an unlabelled node, and the sorted classes (C), in the caller's type.
    """
    numbers, classes = number_classes(y)
    if not len(classes):
        raise InputError(f"y has no label among {len(numbers)} entries: give labels of at least two classes")
    return numbers, classes


def number_classes(y: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Like :func:`encode_labels`, but all nodes may be unlabelled.

    Classes that cannot be compared with each other, such as names and numbers, are compared as strings.
    """
    values, labelled = read_labels(y)
    known = values[labelled]
    if known.dtype.kind == "O":
        known = np.array(known.tolist())
    if known.dtype.kind == "f":
        unusable = known[(known != np.round(known)) | (np.abs(known) >= 2.0**63)]
        if len(unusable):
            raise InputError(f"y holds {unusable[0]}: a class can't be a fraction or infinite; give integers or names")
        known = known.astype(np.int64)
    try:
        found, classes = pd.factorize(known, sort=True)
    except TypeError:
        found, classes = pd.factorize(known.astype(str), sort=True)
    numbers = np.full(len(values), UNLABELLED, dtype=np.int64)
    numbers[labelled] = found
    return numbers, np.array(classes.tolist()) if classes.dtype.kind == "O" else np.asarray(classes)


def check_labels(y: Any, num_nodes: int, class_names: Sequence[str] | None = None) -> tuple[Tensor, list[str]]:
    """Return the class numbers (int64, n), -1 for an unlabelled node, and the names of the classes.

    Integer labels are class numbers already, and only they may come with names; other labels are encoded.
    """
    values = as_array(y, "y")
    if values.shape != (num_nodes,):
        raise InputError(f"y has shape {values.shape}: give one label for each of the {num_nodes} nodes")
    if values.dtype.kind in "iu":
        labels = values.astype(np.int64)
        names = [str(c) for c in (range(labels.max() + 1) if class_names is None else class_names)]
    elif class_names is not None:
        raise InputError(f"y has dtype {values.dtype}: class_names is for integer labels only; leave it out")
    else:
        labels, classes = number_classes(y)
        names = [str(c) for c in classes]
    outside = np.flatnonzero((labels < UNLABELLED) | (labels >= len(names)))
    if len(outside):
        node = outside[0]
        raise InputError(
            f"y[{node}] is {labels[node]}: labels must be from 0 to {len(names) - 1}, or -1 where the class is unknown"
        )
    present = np.unique(labels[labels != UNLABELLED])
    if len(present) == 1:
        raise InputError(f"y has only one class ({names[present[0]]!r}): give labels of at least two classes")
    return torch.from_numpy(labels), names
