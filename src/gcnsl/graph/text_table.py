# ruff: noqa: PLR0917 - compiled functions take their arguments by position
# mypy: disable-error-code="untyped-decorator"
"""A compiled table from texts to their row numbers, for millions of look-ups, without the interpreter's lock.

Open addressing: a slot holds a row number and 32 bits of its text's hash, in one integer. Where those bits agree the
letters are compared, so that an answer is exact.
"""

from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class TextTable:
    """Row numbers by text.

    Args:
        texts: The rows, Arrow's ``large_string``, none missing.
    """

    def __init__(self, texts: pa.Array) -> None:
        self._offsets, self._letters = _parts(texts)
        size = 1 << max(4, int(2 * len(texts) - 1).bit_length())
        self._slots = np.zeros(size, dtype=np.uint64)
        self.unique = _fill(self._offsets, self._letters, self._slots)
        """Whether no two rows have the same text."""

    def find(self, wanted: pa.ChunkedArray, out: NDArray[np.int32]) -> None:
        """Write the row number of each text, -1 for one that no row has."""
        start = 0
        for chunk in wanted.chunks:
            part = out[start : start + len(chunk)]
            _look_up(*_parts(chunk), self._offsets, self._letters, self._slots, part)
            start += len(chunk)


def _parts(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text begins (n + 1), and the letters of all."""
    _, offsets, letters = texts.buffers()
    begins = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return begins, np.frombuffer(letters if letters is not None and letters.size else b"\0", dtype=np.uint8)


_compiled = numba.njit(nogil=True, cache=True)


@_compiled
def _hash(letters: Any, first: int, last: int) -> Any:
    """FNV-1a, stirred so that low bits depend on all letters."""
    value = np.uint64(14695981039346656037)
    for k in range(first, last):
        value = (value ^ np.uint64(letters[k])) * np.uint64(1099511628211)
    value ^= value >> np.uint64(32)
    value *= np.uint64(0x9E3779B97F4A7C15)
    return value ^ (value >> np.uint64(29))


@_compiled
def _same(letters: Any, first: int, last: int, other: Any, begin: int, end: int) -> bool:
    if last - first != end - begin:
        return False
    for k in range(last - first):  # noqa: SIM110 - compiled as it stands
        if letters[first + k] != other[begin + k]:
            return False
    return True


@_compiled
def _fill(offsets: Any, letters: Any, slots: Any) -> bool:
    """Enter every row, and tell whether each was new."""
    mask = np.uint64(len(slots) - 1)
    tag_bits = np.uint64(0xFFFFFFFF00000000)
    for row in range(len(offsets) - 1):
        value = _hash(letters, offsets[row], offsets[row + 1])
        slot = value & mask
        while slots[slot] != 0:
            entry = slots[slot]
            if (entry ^ value) & tag_bits == 0:
                known = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
                if _same(letters, offsets[row], offsets[row + 1], letters, offsets[known], offsets[known + 1]):
                    return False
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = (value & tag_bits) | np.uint64(row + 1)
    return True


@_compiled
def _look_up(offsets: Any, letters: Any, known_offsets: Any, known_letters: Any, slots: Any, out: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    tag_bits = np.uint64(0xFFFFFFFF00000000)
    for k in range(len(offsets) - 1):
        value = _hash(letters, offsets[k], offsets[k + 1])
        slot = value & mask
        out[k] = -1
        while slots[slot] != 0:
            entry = slots[slot]
            if (entry ^ value) & tag_bits == 0:
                row = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
                if _same(
                    letters, offsets[k], offsets[k + 1], known_letters, known_offsets[row], known_offsets[row + 1]
                ):
                    out[k] = row
                    break
            slot = (slot + np.uint64(1)) & mask
