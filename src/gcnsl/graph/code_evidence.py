"""Whether whole numbers are codes or quantities, as far as the edges of the graph tell it.

Linked nodes often have something in common. If that is a quantity, such as the year of birth, then edges join close
values more often than distant ones. If it is a code, such as the number of a dormitory, then they join equal values
more often than chance, but of unequal values close ones no more often than distant ones. No label is looked at.

Two statistics decide, over the edges whose ends both have a value; 0 counts as none, because it often stands for
"unknown" in both codes and quantities:

- E, the share of edges that join equal values. Chance gives Σ_v s_v², where s_v is the share of the ends with value v.
- D, the mean distance in rank of the unequal values that edges join. If the order has no meaning, then any other order
  of the values could have given it: it is compared with D in random orders.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

LEAST_VALUES = 6
"""Fewer distinct values have too few orders to compare with."""
MOST_EDGES = 20_000
"""If there are more edges, this many are drawn at random."""
ORDERS = 199
LEAST_DEVIATION = 5.0
"""E is more than chance if it exceeds it by this many standard deviations: many, as edges are not independent."""
LEVEL = 0.05
"""The order has a meaning if at most this share of random orders have a D as small."""


def some_edges(edge_index: Tensor) -> NDArray[np.int64]:
    """Return the ends of up to :data:`MOST_EDGES` edges (2 × E'), each in one direction, without loops."""
    once: NDArray[np.int64] = edge_index[:, edge_index[0] < edge_index[1]].numpy()
    if once.shape[1] <= MOST_EDGES:
        return once
    return once[:, np.random.default_rng(0).choice(once.shape[1], MOST_EDGES, replace=False)]


def are_codes(values: NDArray[np.floating[Any]], ends: NDArray[np.int64]) -> bool | None:
    """Return whether whole numbers (n, NaN where missing) are codes; ``None`` if these edges (2 × E) do not tell."""
    there = (np.nan_to_num(values) != 0)[ends].all(axis=0)
    levels, places = np.unique(values[ends[:, there]], return_inverse=True)
    if len(levels) < LEAST_VALUES:
        return None
    ranks = places.reshape(2, -1)
    if _order_matters(ranks, len(levels)):
        return False
    return True if _joins_equal_values(ranks) else None


def _joins_equal_values(ranks: NDArray[np.int64]) -> bool:
    """Return whether E is more than chance, for the ranks of both ends of each edge (2 × E)."""
    chance = float(((np.bincount(ranks.ravel()) / ranks.size) ** 2).sum())
    deviation = math.sqrt(chance * (1 - chance) / ranks.shape[1])
    return float((ranks[0] == ranks[1]).mean()) > chance + LEAST_DEVIATION * deviation


def _order_matters(ranks: NDArray[np.int64], count: int) -> bool:
    """Return whether D is smaller than in random orders of the values, of which there are ``count``."""
    generator = np.random.default_rng(0)
    first, second = ranks[:, ranks[0] != ranks[1]]
    if len(first) == 0:
        return False

    def distance(order: NDArray[np.int64]) -> float:
        return float(np.abs(order[first] - order[second]).mean())

    given = distance(np.arange(count))
    as_small = sum(distance(generator.permutation(count)) <= given for _ in range(ORDERS))
    return (1 + as_small) / (1 + ORDERS) <= LEVEL
