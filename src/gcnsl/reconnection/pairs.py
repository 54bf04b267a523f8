"""What a forward pass hands to its backward pass: the kept pairs, as long as they are few.

The list has a fixed capacity, a constant number of pairs for each row, for two reasons: memory stays O(n) whatever ε
lets through, and the size of every tensor is known before a pair has been looked for, which `torch.compile` needs.
(On the CPU, what is reserved and not used takes no memory.) Where the pairs do not fit, nothing is listed and the
backward pass finds them again, a few rows or one tile at a time.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

PAIRS_PER_ROW = {"cpu": 512, "cuda": 128}
"""Room for kept pairs, on average for each row, by device. On a CPU what is not used takes no memory."""


class Regime(IntEnum):
    """How a step goes about its kept pairs; the result is the same."""

    LISTED = 0
    """Few: found once, listed, and worked on one by one."""
    STREAMED = 1
    """Too many to list: found for a few rows at a time, used and forgotten, forward and backward."""
    TILED = 2
    """A good part of all pairs: dense tiles and matrix products are cheaper than pairs one by one."""
    SLOTTED = 3
    """Few, in a small graph: listed in passing over all pairs, each row's in a place of its own."""


class Pairs(NamedTuple):
    """Row i keeps ``columns[start[i] : start[i + 1]]``, ascending, if the regime is LISTED.

    If it is SLOTTED, row i keeps the first ``start[i]`` of the m = capacity(z, 1) columns from i · m on. Else
    nothing is listed.

    ``start`` (n + 1, int64) and ``columns`` (capacity, int32) lie on the device of z; ``regime`` (int64) lies on the
    CPU, where asking for it does not stall a GPU.
    """

    start: Tensor
    columns: Tensor
    regime: Tensor

    def is_(self, regime: Regime) -> bool:
        """Tell whether the step runs in this regime."""
        return int(self.regime) == regime


class PairMemory:
    """The pairs of the last z that a model asked for.

    A training step is followed by an evaluation pass, and that by the next step, with the same weights as the
    evaluation: whoever keeps the memory between the two searches once for both.
    """

    def __init__(self) -> None:
        self._z: Tensor | None = None
        self._threshold = 0.0
        self._pairs: Pairs | None = None

    def recall(self, z: Tensor, threshold: float) -> Pairs | None:
        """The pairs kept last, if they were of this very z and threshold."""
        known = self._z is not None and self._threshold == threshold and torch.equal(self._z, z)
        return self._pairs if known else None

    def keep(self, z: Tensor, threshold: float, pairs: Pairs) -> None:
        """Remember these and forget the others."""
        self._z, self._threshold, self._pairs = z.detach().clone(), threshold, pairs


def capacity(z: Tensor, n: int) -> int:
    """Return how many pairs are listed at most for n rows on the device of z."""
    return n * PAIRS_PER_ROW[z.device.type]


def reserve(z: Tensor, regime: Regime) -> Pairs:
    """Make room for the pairs of z's rows, zero until they are listed."""
    n = z.shape[0]
    start, columns = zeros((n + 1,), z, torch.int64), zeros((capacity(z, n),), z, torch.int32)
    return Pairs(start, columns, torch.tensor(int(regime)))


def reserve_nothing(z: Tensor) -> Pairs:
    """What a back end returns that works in tiles only."""
    empty = z.new_empty(0)
    return Pairs(empty.long(), empty.int(), torch.tensor(int(Regime.TILED)))


def zeros(shape: tuple[int, ...], like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return zeros on the device of ``like``, in its type unless another is given."""
    dtype = dtype or like.dtype
    if like.device.type == "cpu":  # NumPy asks the system for zeroed pages, which come into being when they are written
        return torch.from_numpy(np.zeros(shape, dtype=str(dtype).removeprefix("torch.")))
    return like.new_zeros(shape, dtype=dtype)
