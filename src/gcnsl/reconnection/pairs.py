"""What a forward pass hands to its backward pass: the kept pairs, as long as they are few.

The list has a fixed capacity, a constant number of pairs per row, for two reasons: memory stays O(n) whatever ε is, and
the sizes of all tensors are known before the search, which `torch.compile` needs. If the pairs do not fit, nothing is
listed and the backward pass finds them again, a few rows or one tile at a time.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

PAIRS_PER_ROW = {"cpu": 512, "cuda": 128}
"""Capacity of the list by device, in pairs per row on average. On a CPU, capacity that is not used takes no memory."""


class Regime(IntEnum):
    """How the kept pairs are handled. All regimes give the same result; each has inputs on which it is the fastest.

    Gains are those of a forward and a backward pass, q = 16, p = 64, measured by ``bench/regimes.py`` on two cores and
    on an H200; the regimes took turns, so that the ratios are fair.
    """

    LISTED = 0
    """Few pairs: search once, list them, and visit them one by one.

    1.6 to 3.5 times as fast as STREAMED; on a GPU, with 19,717 nodes, 3.4 to 4.9 times as fast as TILED.
    """
    STREAMED = 1
    """More pairs than the list holds: search a few rows at a time, use their pairs and drop them (CPU only).

    With 600 pairs per row 1.4 times as fast as TILED for 19,717 nodes, 1.7 times for 50,000.
    """
    TILED = 2
    """A large share of all pairs, or few nodes on a GPU: dense tiles and matrix products.

    3.8 times as fast as STREAMED if all pairs are kept; on a GPU, up to 2,708 nodes, 1.1 to 1.4 times as fast as
    LISTED.
    """


class Pairs(NamedTuple):
    """The kept pairs of all rows.

    If the regime is LISTED, row i keeps ``columns[start[i] : start[i + 1]]``, in ascending order; otherwise nothing is
    listed.

    ``start`` (n + 1, int64) and ``columns`` (capacity, int32) are on the device of z. ``regime_code`` (a scalar, int64)
    is on the CPU, where reading it does not stall a GPU.
    """

    start: Tensor
    columns: Tensor
    regime_code: Tensor

    @property
    def regime(self) -> Regime:
        """The regime of the forward pass, which the backward pass follows."""
        return Regime(int(self.regime_code))


class PairMemory:
    """The listed pairs of the last z.

    A training step is often followed by an evaluation pass, and the next training step has the same weights as that
    pass. A model that keeps a memory searches once for both.
    """

    def __init__(self) -> None:
        self._kept: tuple[Tensor, float, bool, Pairs] | None = None

    def __reduce__(self) -> tuple[type["PairMemory"], tuple[()]]:
        """Copy and pickle without the content, which can be searched for again and is larger than any weights."""
        return PairMemory, ()

    def recall(self, z: Tensor, threshold: float, *, loops: bool = True) -> Pairs | None:
        """Return the pairs of z at this threshold, with or without loops, if they are the ones kept last."""
        if self._kept is None:
            return None
        kept_z, *kept_for, pairs = self._kept
        return pairs if kept_for == [threshold, loops] and torch.equal(kept_z, z) else None

    def keep(self, z: Tensor, threshold: float, pairs: Pairs, *, loops: bool = True) -> None:
        """Replace the content by these pairs, or by nothing if they are not listed."""
        listed = pairs.regime == Regime.LISTED
        self._kept = (z.detach().clone(), threshold, loops, pairs) if listed else None  # a copy: z may change in place


def capacity(z: Tensor) -> int:
    """Return the largest number of pairs that are listed for the rows of z."""
    return z.shape[0] * PAIRS_PER_ROW[z.device.type]


def reserve(z: Tensor, regime: Regime) -> Pairs:
    """Return an empty list with room for the pairs of z."""
    start, columns = _zeros(z.shape[0] + 1, z, torch.int64), _zeros(capacity(z), z, torch.int32)
    return Pairs(start, columns, torch.tensor(int(regime)))


def unlisted(z: Tensor, regime: Regime = Regime.TILED) -> Pairs:
    """Return pairs without a list, for a back end that never lists any."""
    return Pairs(z.new_empty(0, dtype=torch.int64), z.new_empty(0, dtype=torch.int32), torch.tensor(int(regime)))


def _zeros(size: int, like: Tensor, dtype: torch.dtype) -> Tensor:
    if like.device.type == "cpu":  # the pages of NumPy's zeros take no memory until they are written to
        return torch.from_numpy(np.zeros(size, dtype=str(dtype).removeprefix("torch.")))
    return like.new_zeros(size, dtype=dtype)
