"""Groups of similar rows: in a large graph, a row is compared with the rows of its group instead of with all.

How a group is drawn depends on how many pairs of rows are similar at all. If many are, a random sample of the rows has
enough similar ones. If few are, rows are divided by direction, so that similar rows tend to be in one group.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcnsl.reconnection.problem import Threshold

WIDTH = 128
"""The size of a group is a multiple of this, since the compiled search compares a row with so many at a time."""
SAMPLED_ROWS, SAMPLED_KEYS = 256, 1 << 13
"""The pairs of rows from which the share of similar pairs is estimated."""
SAMPLED_GROUPS = 64
"""The groups from which the number of similar rows in a group is estimated, with one row of each."""


class GroupSize(NamedTuple):
    """The largest number of rows of a group (at least 128), and how many similar ones per row are enough."""

    most: int
    enough: int


def draw_groups(z: Tensor, threshold: Threshold, size: GroupSize, *, seed: int) -> Tensor:
    """Divide the rows of z into groups in which a row finds ``size.enough`` similar rows on average, if possible.

    If random groups of ``size.most`` rows would hold more, they are made smaller. If they would hold fewer, rows are
    split by direction, as often as the number of similar rows has to double. Where directions form clusters, a group
    can then hold far more than enough, and is divided at random.

    Args:
        z: Rows of norm 1, or zero (n × q).
        threshold: The similarity from which rows are similar.
        size: What a group should hold.
        seed: Seed of everything that is drawn.

    Returns:
        The row numbers of each group (groups × rows, a multiple of 128), on the device of z. Numbers from n on fill up
        the groups and stand for no row.
    """
    generator = torch.Generator(z.device).manual_seed(seed)
    rows, keys = (z[_integers(len(z), (number,), generator)] for number in (SAMPLED_ROWS, SAMPLED_KEYS))
    share = float((rows @ keys.T >= threshold).float().mean())
    if share * size.most >= size.enough:
        return split_groups(z, max(WIDTH, int(size.enough / share)), 0, generator)
    wanted = math.inf if share == 0 else math.ceil(math.log2(size.enough / (share * size.most)))
    return _thinned(split_groups(z, size.most, wanted, generator), z, threshold, size.enough, generator)


def split_groups(z: Tensor, most: int, splits: float, generator: torch.Generator) -> Tensor:
    """Divide the rows of z (n × q) into groups, at random first and then by direction.

    A group has at most ``most`` rows, rounded up to a multiple of :data:`WIDTH`.
    The rows are dealt at random into cells, and each cell is halved ``splits`` times, or as often as that is possible.
    To halve a cell, two of its rows are drawn, and the cell is divided at the median of z·(z_a − z_b). This is a random
    projection tree (Dasgupta and Freund, 2008).
    """
    n = len(z)
    halvings = max(0, math.ceil(math.log2(n / most)))
    rows_per_group = WIDTH * -(-n // (WIDTH << halvings))
    places = rows_per_group << halvings
    padded = torch.cat([z, z.new_zeros(places - n, z.shape[1])])
    by_direction = int(min(splits, halvings))
    cells = torch.randperm(places, generator=generator, device=z.device).view(1 << (halvings - by_direction), -1)
    for _ in range(by_direction):
        drawn = _integers(cells.shape[1], (2, len(cells), 1), generator)
        one, other = padded[cells.expand(2, -1, -1).gather(2, drawn)[:, :, 0]]
        along = (padded[cells] @ (one - other)[:, :, None])[:, :, 0]
        cells = cells.gather(1, _halved(along)).view(-1, cells.shape[1] // 2)
    return cells


def _thinned(groups: Tensor, z: Tensor, threshold: Threshold, enough: int, generator: torch.Generator) -> Tensor:
    """Halve all groups at random, as often as a row still finds enough similar rows in what remains."""
    width, places = groups.shape[1], _integers(groups.shape[1], (SAMPLED_GROUPS, 1), generator)
    members = groups[_integers(len(groups), (SAMPLED_GROUPS,), generator)]
    rows = z[members.clamp(max=len(z) - 1)] * (members < len(z))[:, :, None]
    row = rows.gather(1, places[:, :, None].expand(-1, -1, z.shape[1]))
    found = float((rows @ row.mT >= threshold).sum()) / SAMPLED_GROUPS
    halvings = int(math.log2(max(found / enough, 1)))
    while width % (WIDTH << halvings):
        halvings -= 1
    order = torch.randperm(width, generator=generator, device=z.device)
    return groups[:, order].view(-1, width >> halvings) if halvings else groups


def _integers(end: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(end, shape, generator=generator, device=generator.device)


def _halved(values: Tensor) -> Tensor:
    """For each row the columns of the smaller half of its values, then those of the larger half."""
    if values.device.type != "cpu":
        return values.argsort(dim=1)
    return torch.from_numpy(np.argpartition(values.numpy(), values.shape[1] // 2, axis=1))
