"""Groups of similar rows, so that a row of a large graph is compared with those of its group instead of with all."""

import math

import numpy as np
from numpy.typing import NDArray

from gcnsl.reconnection.numba_search import WIDTH, Floats


def similar_groups(z: Floats, most: int, splits: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Divide rows into groups of equal size: at random first, then by direction.

    The rows are dealt at random into a few cells, and every cell is halved ``splits`` times. A split draws two rows of
    the cell and divides the others at the median of z·(z_a − z_b), so that similar rows tend to stay together (a random
    projection tree). Without splits a group is a random sample of all rows; with more of them it has more of the
    similar rows, and those that it has are nearer on average than those that it misses.

    Args:
        z: Rows (n × q).
        most: The largest size of a group, at least 128.
        splits: The number of splits by direction, at most the number of times that n must be halved.
        rng: Draws the cells and directions.

    Returns:
        The row numbers of each group (groups × size; the size is a multiple of 128). Numbers from n on fill up the last
        places and stand for no row.
    """
    n, halvings = len(z), math.ceil(math.log2(max(1.0, len(z) / most)))
    size = WIDTH * -(-n // (WIDTH << halvings))
    splits = min(splits, halvings)
    padded = np.concatenate([z, np.zeros(((size << halvings) - n, z.shape[1]), z.dtype)])
    cells = rng.permutation(len(padded)).reshape(1 << (halvings - splits), -1)
    for _ in range(splits):
        ends = rng.integers(cells.shape[1], size=(2, len(cells)))
        one, other = padded[cells[np.arange(len(cells)), ends]]
        projection = (padded[cells] @ (one - other)[:, :, None])[:, :, 0]
        half = cells.shape[1] // 2
        cells = np.take_along_axis(cells, np.argpartition(projection, half, axis=1), axis=1).reshape(-1, half)
    return cells
