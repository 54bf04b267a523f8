"""Each thing a graph is made of, checked: features, edges, labels, masks.

A function here takes whatever the caller has (NumPy, torch, SciPy, lists) and returns the one form the
package works with, or raises :class:`~gcnsl.errors.InputError` with a sentence that names the argument, the
place, the value and the remedy.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.sparse import csr_tensor
from gcnsl.errors import InputError

UNLABELLED = -1
"""The label of a node whose class is not known, as in scikit-learn's semi-supervised classifiers."""


class GraphWarning(UserWarning):
    """The graph can be used, but something about it will probably disappoint."""


def check_features(x: Any, name: str = "x") -> Tensor:
    """Features as float32, n × d: dense for dense input, torch CSR for sparse input; finite, n and d at least 1."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        entries = x.detach().cpu().to_sparse().coalesce()
        x = sp.coo_array((entries.values().numpy(), tuple(entries.indices().numpy())), shape=tuple(x.shape))
    if sp.issparse(x):
        matrix = sp.csr_array(x, dtype=np.float32)
        _check_shape(matrix.shape, name)
        if not np.isfinite(matrix.data.sum(dtype=np.float64)):
            stored = matrix.tocoo()
            bad = int(np.flatnonzero(~np.isfinite(stored.data))[0])
            _refuse_value(stored.data[bad], int(stored.row[bad]), int(stored.col[bad]), name)
        start, columns = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
        return csr_tensor(start, columns, torch.from_numpy(matrix.data), matrix.shape)
    values = _array(x, name)
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name} has dtype {values.dtype}: features must be numbers; encode or drop the others")
    _check_shape(values.shape, name)
    with np.errstate(over="ignore"):  # a float64 beyond float32's range becomes inf and is refused below
        dense = np.ascontiguousarray(values, dtype=np.float32)
    if not np.isfinite(dense.sum(dtype=np.float64)):
        row, column = (int(i) for i in np.argwhere(~np.isfinite(dense))[0])
        _refuse_value(values[row, column], row, column, name)
    return torch.from_numpy(dense)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise InputError(f"{name} has shape {shape}: give a matrix, one row a node")
    if shape[0] == 0:
        raise InputError(f"{name} has shape {shape}: the graph is empty; give at least one node")
    if shape[1] == 0:
        raise InputError(f"{name} has shape {shape}: nodes have no features; give at least one numeric column")


def _refuse_value(value: Any, row: int, column: int, name: str) -> None:
    raise InputError(
        f"{name}[{row}, {column}] is {value}: features must be finite in float32; fill, clip or drop it first"
    )


def check_edges(edge_index: Any, num_nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Sources and targets of a 2 × E edge list, each in [0, n)."""
    ends = _array(edge_index, "edge_index")
    if ends.size == 0:
        ends = np.empty((2, 0), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[0] != 2:
        hint = "; transpose it" if ends.ndim == 2 and ends.shape[1] == 2 else ""
        raise InputError(f"edge_index has shape {ends.shape}: give 2 rows, sources and targets{hint}")
    if ends.dtype.kind not in "iu":
        raise InputError(f"edge_index has dtype {ends.dtype}: give integer node numbers from 0 to {num_nodes - 1}")
    if ends.size and (ends.min() < 0 or ends.max() >= num_nodes):
        side, column = (int(i) for i in np.argwhere((ends < 0) | (ends >= num_nodes))[0])
        raise InputError(
            f"edge_index[{side}, {column}] is {ends[side, column]}, but there are {num_nodes} nodes, numbered 0 to "
            f"{num_nodes - 1}; drop the edge or add the node"
        )
    return ends[0].astype(np.int32, copy=False), ends[1].astype(np.int32, copy=False)


def check_labels(y: Any, num_nodes: int, class_names: Sequence[str] | None = None) -> tuple[Tensor, list[str]]:
    """Labels as int64, -1 where the class is not known, and the names of the classes.

    Integers are class numbers as they are. Anything else (strings, objects, ``None`` or NaN for a missing
    one) is encoded: classes in sorted order.
    """
    values = _array(y, "y")
    if values.shape != (num_nodes,):
        raise InputError(f"y has shape {values.shape}: give one label for each of the {num_nodes} nodes")
    if values.dtype.kind in "iu":
        labels = values.astype(np.int64)
        found = int(labels.max()) + 1
        names = [str(c) for c in range(found)] if class_names is None else [str(c) for c in class_names]
    elif class_names is not None:
        raise InputError(f"y has dtype {values.dtype}: class_names goes with integer labels; leave it out for names")
    else:
        labels, names = encode_labels(values)
    outside = (labels < UNLABELLED) | (labels >= len(names))
    if outside.any():
        node = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"y[{node}] is {labels[node]}: labels must be from 0 to {len(names) - 1}, or -1 where the class is unknown"
        )
    present = np.unique(labels[labels != UNLABELLED])
    if len(present) == 1:
        raise InputError(
            f"y has one class only ({names[present[0]]!r}): there is nothing to tell apart; give labels of two or more"
        )
    return torch.from_numpy(labels), names


def encode_labels(values: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Any labels as class numbers, classes in sorted order (as text if they can't be compared with each other).

    A label that is missing (``None``, NaN) or the integer -1 is encoded as -1.
    """
    if values.dtype.kind == "f":
        unusable = values[~np.isnan(values) & ((values != np.round(values)) | np.isinf(values))]
        if len(unusable):
            raise InputError(f"y holds {unusable[0]}: a class can't be a fraction; give integers or names")
        values = pd.array(values, dtype="Int64")
    try:
        labels, classes = pd.factorize(values, sort=True)
    except TypeError:
        text = pd.Series(values, dtype=object).map(str, na_action="ignore")
        labels, classes = pd.factorize(text, sort=True)
    known = np.array([c != UNLABELLED for c in classes], dtype=bool)
    number = np.append(np.where(known, np.cumsum(known) - 1, UNLABELLED), UNLABELLED)  # the last entry serves label -1
    return number[labels].astype(np.int64), [str(c) for c, kept in zip(classes, known, strict=True) if kept]


def check_masks(
    masks: dict[str, Any], y: Tensor | None, num_nodes: int, class_names: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Masks as bool, n × runs, disjoint, over labelled nodes only, each run with training nodes.

    Args:
        masks: ``train_mask``, ``val_mask``, ``test_mask``: any of them, n or n × runs, ``None`` for one not given.
        y: Labels, -1 for unknown.
        num_nodes: Number of nodes n.
        class_names: For messages.
    """
    given = {name: _mask(mask, name, num_nodes) for name, mask in masks.items() if mask is not None}
    if not given:
        return {}
    if y is None:
        raise InputError(f"{next(iter(given))} is given without y: masks select labelled nodes; give y too")
    shapes = {name: tuple(mask.shape) for name, mask in given.items()}
    if len(set(shapes.values())) > 1:
        raise InputError(f"masks have different numbers of runs: {shapes}; give each the same shape")
    taken = torch.zeros_like(next(iter(given.values())), dtype=torch.int8)
    for name, mask in given.items():
        taken += mask
        unlabelled = mask & (y == UNLABELLED)[:, None]
        if unlabelled.any():
            node, run = (int(i) for i in unlabelled.nonzero()[0])
            raise InputError(f"{name}[{node}, {run}] selects a node without a label; unset it or give the label")
    if (taken > 1).any():
        node, run = (int(i) for i in (taken > 1).nonzero()[0])
        both = " and ".join(name for name, mask in given.items() if mask[node, run])
        raise InputError(f"node {node} is in {both} of run {run}: masks must not overlap; unset all but one")
    train = given.get("train_mask")
    if train is not None:
        empty = (~train.any(dim=0)).nonzero()
        if len(empty):
            raise InputError(f"train_mask selects no node in run {int(empty[0])}: give it training nodes")
        for sentence in untrained_classes(train, y, class_names):
            warnings.warn(sentence, GraphWarning, stacklevel=3)
    return given


def untrained_classes(train: Tensor, y: Tensor, class_names: Sequence[str] = ()) -> list[str]:
    """One sentence for each class that has labelled nodes, but no training node in some run."""
    sentences = []
    for c in torch.unique(y[y != UNLABELLED]).tolist():
        absent = (~train[y == c].any(dim=0)).nonzero().flatten().tolist()
        if absent:
            title = repr(class_names[c]) if c < len(class_names) else str(c)
            runs = ", ".join(map(str, absent)) if len(absent) < train.shape[1] or len(absent) == 1 else "every one"
            sentences.append(f"class {title} has no training node in run {runs}: it can't be learnt there")
    return sentences


def _mask(mask: Any, name: str, num_nodes: int) -> Tensor:
    values = _array(mask, name)
    if values.ndim not in (1, 2) or values.shape[0] != num_nodes or values.size == 0:
        raise InputError(f"{name} has shape {values.shape}: give {num_nodes} rows, one a node, and one column a run")
    if values.dtype.kind not in "biu" or (values.dtype.kind != "b" and not np.isin(values, (0, 1)).all()):
        raise InputError(f"{name} has dtype {values.dtype} or values other than 0 and 1: give a boolean mask")
    return torch.from_numpy(np.ascontiguousarray(values.reshape(num_nodes, -1), dtype=bool))


def _array(values: Any, name: str) -> NDArray[Any]:
    """Anything array-like as a NumPy array, or our own error."""
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name} is no array ({error}): give NumPy, torch or SciPy data of equal row lengths"
        ) from error
