"""Node labels of any type: which nodes have one, and the number of each class.

This holds for labels from every source. A node is unlabelled where its label is missing (``None``, NaN or empty text),
or is one of :data:`UNKNOWN`: -1 as a number or as text, because NumPy and text files turn a -1 among names into text,
and what stands for a missing value in text files, such as ``NA`` and ``null``. Tables can be read with other values in
place of :data:`UNKNOWN`.
"""

import re
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
from gcnsl.graph.table_reading import MISSING

MOST_CLASSES = 1000
"""Integer labels from here on are taken for codes if there are fewer nodes than that."""
UNKNOWN = (str(UNLABELLED), *filter(None, MISSING))
"""The labels, as text, of nodes whose class is unknown, besides those that are missing."""
NO_CLASS = "a class can't be a fraction or infinite, or have broken characters; give integers or names"
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")


def read_labels(y: Any, unknown: Sequence[Any] = UNKNOWN) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the labels as an array of the caller's values, and a mask of the labelled nodes (n each)."""
    values = as_array(y, "y")
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: give one label for each node")
    if values.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        values = np.array([*y, None], dtype=object)[:-1]  # NumPy would turn all into strings, even NaN
    texts, missing = ["", *map(str, unknown)], pd.isna(values)
    numbers = [float(text) for text in texts if _NUMBER.fullmatch(text)]
    if values.dtype.kind not in "OU":
        return values, ~(missing | np.isin(values, numbers))
    values = values.astype(object)
    values[missing] = UNLABELLED
    return values, ~(missing | pd.Series(values, dtype=object).isin([*texts, *numbers]).to_numpy())


def encode_labels(y: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Encode labels, which are integers, strings or both, as class numbers.

    Returns the class numbers (n), -1 for an unlabelled node, and the sorted classes (C), in the caller's type.
    """
    numbers, classes = number_classes(y)
    if not len(classes):
        raise InputError(f"y has no label among {len(numbers)} entries: give labels of at least two classes")
    return numbers, classes


def number_classes(y: Any, unknown: Sequence[Any] = UNKNOWN) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Like :func:`encode_labels`, but all nodes may be unlabelled.

    Classes that cannot be compared with each other, such as names and numbers, are compared as strings.
    """
    values, labelled = read_labels(y, unknown)
    known = values[labelled]
    if known.dtype.kind == "O":
        known = _typed(known)
    if known.dtype.kind == "O" and len({isinstance(label, str) for label in known}) > 1:
        _check_classes(known)
        known = known.astype(str)
    if known.dtype.kind == "f":
        unusable = known[is_no_class(known)]
        if len(unusable):
            raise InputError(f"y holds {unusable[0]}: {NO_CLASS}")
        known = known.astype(np.int64)
    try:
        found, classes = pd.factorize(known, sort=True)
    except TypeError:
        _check_classes(known)
        found, classes = pd.factorize(known.astype(str), sort=True)
    numbers = np.full(len(values), UNLABELLED, dtype=np.int64)
    numbers[labelled] = found
    classes = _typed(classes) if classes.dtype.kind == "O" else np.asarray(classes)
    _check_classes(classes)
    return numbers, classes


def _check_classes(labels: NDArray[Any]) -> None:
    """Refuse labels of types that a saved model can't keep."""
    for label in labels:
        if isinstance(label, np.timedelta64) or not isinstance(label, int | str | np.integer | np.bool_):
            raise InputError(f"y holds {label!r}: a class must be an integer, a truth value or text; convert it")
        if _is_broken(label):
            raise InputError(f"y holds {str(label)!r}: {NO_CLASS}")


def _is_broken(label: Any) -> bool:
    """Whether a text has NUL characters, which NumPy drops at its end, or half of a surrogate pair."""
    return isinstance(label, str) and label.encode(errors="ignore").replace(b"\0", b"").decode() != label


def is_no_class(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels (n) are numbers that are not integers, or too large for one, or broken text."""
    if labels.dtype.kind == "O":
        return np.array([_is_broken(label) for label in labels], dtype=bool)
    if labels.dtype.kind != "f":
        return np.zeros(len(labels), dtype=bool)
    found: NDArray[np.bool_] = (labels != np.round(labels)) | (np.abs(labels) >= 2.0**63)
    return found


def _typed(values: Any) -> NDArray[Any]:
    """Python objects in the type that NumPy finds for them, unless that changes them.

    NumPy makes floats of integers of many digits, and drops NUL characters at the end of a text.
    """
    array = np.array(values.tolist())
    rounded = array.dtype.kind == "f" and all(isinstance(value, int) for value in values)
    shortened = array.dtype.kind == "U" and any(_is_broken(value) for value in values)
    return np.array(values, dtype=object) if rounded or shortened else array


def check_labels(y: Any, num_nodes: int, class_names: Sequence[str] | None = None) -> tuple[Tensor, list[str]]:
    """Return the class numbers (int64, n), -1 for an unlabelled node, and the names of the classes.

    Integer labels are class numbers already, and only they may come with names; other labels are encoded.
    """
    values = as_array(y, "y")
    if values.shape != (num_nodes,):
        raise InputError(f"y has shape {values.shape}: give one label for each of the {num_nodes} nodes")
    if values.dtype.kind in "iu":
        labels = values.astype(np.int64)
        if class_names is None and labels.max() >= max(num_nodes, MOST_CLASSES):
            node = int(labels.argmax())
            raise InputError(
                f"y[{node}] is {labels[node]}: integer labels are class numbers, which begin at 0 and leave none out; "
                "gcnsl.graph.encode_labels numbers other integers"
            )
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
