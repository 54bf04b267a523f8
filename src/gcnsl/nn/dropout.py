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


def dropout(values: Tensor, rate: float, *, training: bool) -> Tensor:
    """In training, set entries to zero with probability ``rate`` and scale the others to keep the expected value.

    The draws are seeded by torch's generator: the same seed gives the same bits.
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
    """Dropout on the entries of X; for a sparse X on the stored entries only, because the others are 0 anyway."""
    if isinstance(x, SparseMatrix):
        return x.with_values(dropout(x.values, rate, training=training))
    return dropout(x, rate, training=training)
