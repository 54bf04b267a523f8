"""Node labels of any type: which nodes have one, the classes in the caller's type, and the number of each class.

A node is unlabelled where its label is missing (``None``, NaN or empty text) or is one of :data:`UNKNOWN`: -1 as a
number or as text, because NumPy and text files turn a -1 among names into text, and what stands for a missing value in
text files, such as ``NA`` and ``null``. Whoever reads labels can name other values in place of these. If all labels are
1 and -1, both are classes: these are the usual names of two.

Classes are integers, truth values, text or, if there are few of them, fractions; integers that are stored as floats are
integers again.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnsl.checks import UNLABELLED, as_array
from gcnsl.errors import InputError
from gcnsl.graph.masks import GraphWarning
from gcnsl.graph.tables import MISSING, Table

UNKNOWN = (str(UNLABELLED), *filter(None, MISSING))
"""The labels, as text, of nodes whose class is unknown, besides those that are missing."""
FAIR_SHARE = 0.01
"""Labels that count as unknown are worth a warning if at least this share of the labels are such."""
MOST_NUMBERS, ROWS_PER_NUMBER = 50, 5
"""More different numbers than the first, with fewer rows each than the second, are a quantity rather than classes."""
_USABLE = (bool, int, float, str, np.bool_, np.integer, np.floating)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
_WRITTEN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?")
"""A number as one would write it. With a leading zero it is text: ``007`` and ``7`` are two classes."""


class UnknownLabelsWarning(GraphWarning):
    """Many nodes have a label that counts as unknown, although their owner may mean a class by it."""


def unknown_in_words(counts: Mapping[str, int], remedy: str) -> str:
    """How many nodes have labels that count as unknown, and what keeps these as classes."""
    (first, count), *others = counts.items()
    rows = f"{count:,} rows have the label {first}" if count > 1 else f"1 row has the label {first}"
    rows += "".join(f" and {count:,} the label {text}" for text, count in others)
    does, it = ("count", "them") if others else ("counts", "it")
    return f"{rows}, which {does} as unknown: {remedy} keeps {it} as a class"


class Labels(NamedTuple):
    """What was read of the labels of n nodes."""

    numbers: NDArray[np.int64]
    """The class number of each node (n), -1 for an unlabelled one."""
    classes: NDArray[Any]
    """The classes (C), sorted, in the type of the labels."""
    counted_unknown: dict[str, int]
    """How many nodes have each of the labels that count as unknown; those without a label are not among them."""
    unknown: list[str]
    """The labels, as text, that count as unknown in these labels."""


def is_often_unknown(counts: Mapping[str, int], labelled: int) -> bool:
    """Whether so many labels count as unknown, beside so many others, that a user should hear of it."""
    hidden = sum(counts.values())
    return hidden > 0 and hidden >= FAIR_SHARE * (hidden + labelled)


def read_labels(y: Any, unknown: Sequence[Any] | None = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the labels as an array of the caller's values, and a mask of the labelled nodes (n each)."""
    values = _label_array(y)
    codes, distinct = _distinct(values)
    return values, ~np.append(_hidden(distinct, unknown)[0], True)[codes]  # -1, a missing label, is the last entry


def encode_labels(y: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Encode labels of any type as class numbers.

    Returns the class numbers (n), -1 for an unlabelled node, and the sorted classes (C), in the caller's type.
    """
    found = number_classes(y)
    if not len(found.classes):
        raise InputError(f"y has no label among {len(found.numbers)} entries: give labels of at least two classes")
    return found.numbers, found.classes


def number_classes(y: Any, unknown: Sequence[Any] | None = None) -> Labels:
    """Like :func:`encode_labels`, with all that was read; all nodes may be unlabelled.

    Classes that cannot be compared with each other, such as names and numbers, are compared as strings. ``unknown`` are
    the labels of nodes whose class is not known, ``None`` for :data:`UNKNOWN`.
    """
    try:
        return _numbered(*_distinct(_label_array(y)), unknown)
    except UnusableLabelError as error:
        raise InputError(f"y holds {error}") from None


def read_label_column(table: Table, name: str, unknown: Sequence[Any] | None = None) -> Labels:
    """Like :func:`number_classes`, for a column of a table, which in a text file must have been read as text.

    Raises:
        InputError: If the column has a single class, or a value that can't be a class; it names the row.
    """
    column = table.columns[name]
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        elif not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            column = column.cast(pa.string())
        coded = pa.chunked_array(column.dictionary_encode().chunks).combine_chunks()
    except pa.ArrowException as error:
        raise InputError(f"{table.name}: column {name!r} can't be used as the label: {error}") from error
    place, distinct = _distinct(coded.dictionary.to_numpy(zero_copy_only=False))
    codes = np.append(place, -1)[pc.fill_null(coded.indices, -1).to_numpy()]
    try:
        found = _numbered(codes, distinct, unknown, as_written=table.is_text)
    except UnusableLabelError as error:
        raise InputError(f"{table.place(codes == error.which, name)} is {error}") from None
    except InputError as error:
        raise InputError(f"{table.name}, column {name!r}: {error}") from None
    if len(found.classes) == 1:
        only = f"{table.name}: column {name!r} has only one class ({str(found.classes[0])!r})"
        counts = " and ".join(f"{count:,} with {text!r}" for text, count in found.counted_unknown.items())
        raise InputError(f"{only}{counts and f', and {counts} count as unknown'}: label nodes of at least two")
    return found


class UnusableLabelError(InputError):
    """A label that can't be a class; ``which`` is its number among the distinct labels."""

    def __init__(self, which: int, message: str) -> None:
        super().__init__(message)
        self.which = which


def _label_array(y: Any) -> NDArray[Any]:
    """The labels in an array, in which they are of the caller's types."""
    values = as_array(y, "y")
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: give one label for each node")
    if values.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        values = np.array([*y, None], dtype=object)[:-1]  # NumPy would turn all into strings, even NaN
    return values.astype(object) if values.dtype.kind == "U" else values


def _distinct(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Which of the distinct labels each entry has (n), -1 if it is missing, and the distinct labels."""
    try:
        codes, found = pd.factorize(values)
    except TypeError as error:
        raise InputError(f"y holds a label of a type that can't be compared ({error}): give integers or text") from None
    return codes.astype(np.int64), np.asarray(found)


def _hidden(distinct: NDArray[Any], unknown: Sequence[Any] | None) -> tuple[NDArray[np.bool_], list[str]]:
    """Which of the distinct labels are empty or count as unknown, and the texts that do.

    By default these are :data:`UNKNOWN`, but -1 is a class if 1 is the only other label.
    """
    texts = list(map(str, UNKNOWN if unknown is None else unknown))
    hidden = _among(distinct, ["", *texts])
    one, minus_one = _among(distinct[~hidden], ["1"]), str(UNLABELLED)
    if unknown is None and _among(distinct, [minus_one]).any() and len(one) and one.all():
        texts.remove(minus_one)
        hidden = _among(distinct, ["", *texts])
    return hidden, texts


def _among(labels: NDArray[Any], texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which labels are one of these texts, or the number that it stands for."""
    wanted = {*texts, *(float(text) for text in texts if _NUMBER.fullmatch(text))}
    return np.array([(str(x) if isinstance(x, bool | np.bool_) else x) in wanted for x in labels], dtype=bool)


def _numbered(
    codes: NDArray[np.int64], distinct: NDArray[Any], unknown: Sequence[Any] | None, *, as_written: bool = False
) -> Labels:
    """Number the classes of nodes (n) of which ``codes`` says which of the distinct labels they have, -1 for none.

    With ``as_written``, the labels are the text of a file, in which ``1`` stands for a number.
    """
    hidden, texts = _hidden(distinct, unknown)
    rows, kept = np.bincount(codes[codes >= 0], minlength=len(distinct)), np.flatnonzero(~hidden)
    is_counted = hidden & ~_among(distinct, [""])
    counted = {_as_text(distinct[place]): int(rows[place]) for place in np.flatnonzero(is_counted)}
    _check_classes(distinct, kept)
    values = _typed(distinct[kept])
    if as_written:
        values = _from_text(values)
    if values.dtype.kind == "f" and ((values == np.round(values)) & (np.abs(values) < 2.0**63)).all():
        values = values.astype(np.int64)
    if values.dtype.kind == "O" and any(isinstance(label, str) for label in values):
        values = values.astype(str)
    classes, found = np.unique(values, return_inverse=True)
    labelled = int(rows[kept].sum())
    if classes.dtype.kind in "iuf" and len(classes) > max(MOST_NUMBERS, labelled / ROWS_PER_NUMBER):
        raise InputError(
            f"{len(classes):,} different numbers among {labelled:,} labels, such as {classes[len(classes) // 2]}, are "
            "a quantity, and this tool predicts classes: cut it into a few ranges, or name another column"
        )
    number = np.full(len(distinct) + 1, UNLABELLED, dtype=np.int64)  # the last entry is for -1
    number[kept] = found
    return Labels(number[codes], classes, counted, texts)


def _as_text(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _typed(values: NDArray[Any]) -> NDArray[Any]:
    """Python objects in the type that NumPy finds for them, unless it would round integers or make text of numbers."""
    if values.dtype.kind != "O" or not len(values):
        return values
    array = np.array(values.tolist())
    kinds = {next((kind for kind in (bool, np.bool_, str) if isinstance(value, kind)), float) for value in values}
    rounded = array.dtype.kind == "f" and all(isinstance(value, int) for value in values)
    return values if len(kinds) > 1 or rounded else array


def class_array(names: Sequence[Any]) -> NDArray[Any]:
    """The classes (C), in their order, as an array of the type that they have."""
    return _typed(np.array([*names, None], dtype=object)[:-1])


def _from_text(texts: NDArray[Any]) -> NDArray[Any]:
    """The labels of a text file as the numbers or the truth values that all of them stand for, else as they are."""
    if len(texts) and all(_WRITTEN_NUMBER.fullmatch(text) for text in texts):
        numbers = np.array([float(text) if "." in text else int(text) for text in texts])
        is_exact = numbers.dtype.kind == "i" or (numbers.dtype.kind == "f" and np.abs(numbers).max() < 2.0**53)
        return numbers if is_exact else texts
    return texts == "True" if len(texts) and set(texts) <= {"True", "False"} else texts


def _check_classes(distinct: NDArray[Any], kept: NDArray[np.int64]) -> None:
    """Refuse labels that a saved model can't keep."""
    for which in kept.tolist():
        label, why = distinct[which], ""
        if isinstance(label, np.timedelta64) or not isinstance(label, _USABLE):
            raise UnusableLabelError(which, f"{label!r}: a class must be a number, a truth value or text; convert it")
        if isinstance(label, float | np.floating) and not np.isfinite(label):
            why = f"{label}: a class can't be infinite; leave it empty if the class is unknown"
        elif isinstance(label, str) and label.encode(errors="ignore").replace(b"\0", b"").decode() != label:
            why = f"{label!r}: a class can't have broken characters; correct the text"  # NumPy drops NUL at its end
        if why:
            raise UnusableLabelError(which, why)


def check_labels(y: Any, num_nodes: int, class_names: Sequence[Any] | None = None) -> tuple[Tensor, list[Any]]:
    """Return the class numbers (int64, n), -1 for an unlabelled node, and the classes in the type of the labels.

    If the classes are given, ``y`` holds their numbers; else it holds labels of any type.
    """
    values = as_array(y, "y")
    if values.shape != (num_nodes,):
        raise InputError(f"y has shape {values.shape}: give one label for each of the {num_nodes} nodes")
    if class_names is None:
        found = number_classes(y)
        labels, names = found.numbers, found.classes.tolist()
    elif values.dtype.kind not in "iu":
        raise InputError(f"y has dtype {values.dtype}: with class_names, give class numbers; else leave these out")
    else:
        labels, names = values.astype(np.int64), list(class_names)
        outside = np.flatnonzero((labels < UNLABELLED) | (labels >= len(names)))
        if len(outside):
            node = outside[0]
            raise InputError(
                f"y[{node}] is {labels[node]}: class numbers are from 0 to {len(names) - 1}, or -1 where the class is "
                "unknown"
            )
    present = np.unique(labels[labels != UNLABELLED])
    if len(present) == 1:
        raise InputError(f"y has only one class ({str(names[present[0]])!r}): give labels of at least two classes")
    return torch.from_numpy(labels), names
