"""Columns of one type, one after the other in a single array.

Each call of Arrow or NumPy takes some microseconds, which is longer than its work on a column of few rows. A table with
thousands of such columns is therefore converted block by block rather than column by column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

MOST_VALUES = 2**20
"""The largest number of values in a block of several columns, so that it takes little memory."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some columns of the same type and length.

    Attributes:
        names: Their names (k).
        values: The values of the first column, then those of the second, and so on (k · n).
    """

    names: list[str]
    values: pa.ChunkedArray

    def first(self, bad: Any) -> tuple[str, int]:
        """The column and the row of the first bad value, which are marked in a mask (k · n)."""
        column, row = divmod(int(np.flatnonzero(np.asarray(bad))[0]), len(self.values) // len(self.names))
        return self.names[column], row


def blocks_of(columns: Mapping[str, pa.ChunkedArray]) -> Iterator[Block]:
    """Divide columns of equal length into blocks. Categories become the values that they stand for."""
    names: dict[pa.DataType, list[str]] = defaultdict(list)
    for name, column in columns.items():
        names[column.type].append(name)
    for alike in names.values():
        size = max(1, MOST_VALUES // max(1, len(columns[alike[0]])))
        for first in range(0, len(alike), size):
            part = alike[first : first + size]
            yield Block(part, _joined([_without_codes(columns[name]) for name in part]))


def _joined(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The values of all columns; in one piece if there are several, because calls take time for each piece, too."""
    if len(columns) == 1:
        return columns[0]
    return pa.chunked_array([pa.concat_arrays([chunk for column in columns for chunk in column.chunks])])


def _without_codes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Categories as the values that they stand for; a column without any value as text."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column.cast(pa.large_string()) if pa.types.is_null(column.type) else column
