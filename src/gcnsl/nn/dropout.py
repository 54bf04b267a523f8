"""Dropout, drawn fast.

torch draws a number from a Mersenne twister for every entry, which on a CPU takes longer than everything else that a
small model does. Sixteen bits per entry from a faster generator do as well: the rate is met to within 1 / 65,536, and
kept entries are scaled by exactly what that rate asks for.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gcnsl.sparse import Matrix, SparseMatrix

_STEPS = 1 << 16


def dropout(values: Tensor, rate: float, *, training: bool) -> Tensor:
    """In training, set entries to zero with probability ``rate`` and scale the others so that the mean stays the same.

    Seeded by torch's generator, like torch's own; the same seed gives the same bits.
    """
    if not training or rate == 0:
        return values
    if values.device.type != "cpu":
        return functional.dropout(values, rate)
    dropped = min(round(rate * _STEPS), _STEPS - 1)
    generator = np.random.SFC64(int(torch.randint(2**62, ())))
    draws = torch.from_numpy(generator.random_raw(-(-values.numel() // 4)).view(np.int16)[: values.numel()])
    kept = (draws >= dropped - _STEPS // 2).to(values.dtype).view(values.shape)
    return values * kept.mul_(_STEPS / (_STEPS - dropped))


def drop_entries(x: Matrix, rate: float, *, training: bool) -> Matrix:
    """Dropout on the entries of X; in a sparse X only the stored entries are dropped, the others are 0 anyway."""
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values, rate, training=training))
    return dropout(x, rate, training=training)
