"""The label column of a table: its classes, and the class number of each row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError
from gcnsl.graph.labels import NO_CLASS, UNKNOWN, is_no_class, number_classes, read_labels
from gcnsl.graph.table_reading import Table

_FLOAT_DIGITS = 15
"""Integers of so many digits are exact as floats."""
_NUMBER = r"^-?(0|[1-9]\d*)(\.\d*)?$"
"""A number as one would write it. With a leading zero it is text: ``007`` and ``7`` are two classes."""


def label_classes(table: Table, name: str, unknown: Sequence[Any] | None = None) -> tuple[NDArray[np.int64], list[str]]:
    """Return the class number of each row (n), -1 if it has no label, and the names of the classes.

    Args:
        table: The table of nodes.
        name: Its label column. In a text file it must have been read as text.
        unknown: The labels that mean that the class is not known; ``None`` for :data:`gcnsl.graph.labels.UNKNOWN`.
    """
    column, unknown = table.columns[name], UNKNOWN if unknown is None else [str(value) for value in unknown]
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        elif not pa.types.is_integer(column.type):
            column = column.cast(pa.string())
        coded = pa.chunked_array(column.dictionary_encode().chunks).combine_chunks()
        found = _as_numbers(coded.dictionary, unknown) if table.is_text else coded.dictionary
    except pa.ArrowException as error:
        raise InputError(f"{table.name}: column {name!r} can't be used as the label: {error}") from error
    values, rows = found.to_numpy(zero_copy_only=False), pc.fill_null(coded.indices, -1).to_numpy()
    bad = np.append(read_labels(values, unknown)[1] & is_no_class(values), False)[rows]  # -1 selects the last entry
    if bad.any():
        value = table.columns[name].filter(pa.array(bad))[0].as_py()
        raise InputError(f"{table.place(bad, name)} is {value}: {NO_CLASS}, or leave it empty if the class is unknown")
    numbers, classes = number_classes(values, unknown)
    if len(classes) == 1:
        raise InputError(
            f"{table.name}: column {name!r} has only one class ({str(classes[0])!r}): label nodes of at least two"
        )
    return np.append(numbers, UNLABELLED)[rows], [str(c) for c in classes]


def _as_numbers(texts: pa.Array, unknown: Sequence[str]) -> pa.Array:
    """The labels of a text file as numbers if all known ones are; integers of too many digits stay text.

    Beside unknown ones, NumPy makes floats of integers.
    """
    known = pc.if_else(pc.is_in(texts, value_set=pa.array(unknown, texts.type)), None, texts)
    if not pc.all(pc.match_substring_regex(known, _NUMBER)).as_py():
        return texts
    fraction = pc.any(pc.match_substring(known, ".")).as_py()
    if known.null_count and not fraction and (pc.max(pc.utf8_length(known)).as_py() or 0) > _FLOAT_DIGITS:
        return texts
    try:
        return known.cast(pa.float64() if fraction else pa.int64())
    except pa.ArrowInvalid:
        return texts
