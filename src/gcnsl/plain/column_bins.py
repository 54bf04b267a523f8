"""Columns cut into a few bins each, once, so that scikit-learn need not do it before every tree that is added."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BINS = 32


def column_edges(columns: Floats) -> Floats:
    """Edges between the bins of each column, about equally full (m × 31); if there are fewer, the others are infinite.

    Every edge is in the middle between two values of the column (t × m), so that rounding moves no value across it.
    """
    edges = np.full((columns.shape[1], BINS - 1), np.inf)
    shares = np.arange(1, BINS) / BINS
    for column, found in zip(np.sort(columns, axis=0).T, edges, strict=True):
        values = np.unique(column)
        middles = (values[1:] + values[:-1]) / 2
        if len(middles) >= BINS:
            places = np.searchsorted(values[:-1], column[(shares * len(column)).astype(int)])
            middles = np.unique(middles[np.minimum(places, len(middles) - 1)])
        found[: len(middles)] = middles
    return edges


def column_bins(columns: Floats, edges: Floats) -> Floats:
    """The number of the bin of each value (t × m): bin b holds the values above edge b - 1 and up to edge b."""
    return np.stack([np.searchsorted(own, column) for own, column in zip(edges, columns.T, strict=True)], axis=1)
