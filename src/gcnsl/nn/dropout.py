"""Fast dropout.

On a CPU, torch draws a number from a Mersenne twister for every entry, which takes longer than all other work of a
small model. Here a faster generator draws 16 bits per entry. The rate is therefore rounded to a multiple of 1 / 65,536,
and the entries that are kept are scaled according to the rounded rate.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gcnsl.sparse import Matrix, SparseMatrix

_STEPS = 1 << 16


def dropout(values: Tensor, rate: float, *, training: bool, in_place: bool = False) -> Tensor:
    """In training, set entries to zero with probability ``rate`` and scale the others to keep the expected value.

    The draws are seeded by torch's generator: the same seed gives the same bits.

    Args:
        values: A row for each node, or the entries of a sparse matrix.
        rate: The rate of dropout.
        training: Whether to drop entries.
        in_place: Whether to change the values themselves, of which no derivative may be wanted then.
    """
    if not training or rate == 0:
        return values
    if values.device.type != "cpu":
        return functional.dropout(values, rate, inplace=in_place)
    dropped, scale = _dropped_steps(rate), scale_of_kept(values, rate)
    kept = (_draws(values.numel()) >= dropped - _STEPS // 2).view(values.shape)
    return values.mul_(kept).mul_(scale) if in_place else values * kept.to(values.dtype).mul_(scale)


def scale_of_kept(values: Tensor, rate: float) -> float:
    """The factor by which :func:`dropout` multiplies the entries of values that it keeps."""
    if values.device.type != "cpu":
        return 1 / (1 - rate)
    return _STEPS / (_STEPS - _dropped_steps(rate))


def _dropped_steps(rate: float) -> int:
    return min(round(rate * _STEPS), _STEPS - 1)


def _draws(number: int) -> Tensor:
    """So many random 16-bit numbers."""
    seed = int(torch.randint(2**62, ()))
    return torch.from_numpy(np.random.SFC64(seed).random_raw(-(-number // 4)).view(np.int16)[:number])


def drop_entries(x: Matrix, rate: float, *, training: bool) -> Matrix:
    """Dropout on the entries of X; for a sparse X on the stored entries only, because the others are 0 anyway."""
    if not training or rate == 0:
        return x  # a sparse matrix keeps what it has stored for its products
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values, rate, training=training))
    return dropout(x, rate, training=training)
