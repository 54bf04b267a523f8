"""The one rule for edges: a graph is simple and undirected.

Raw edge lists repeat entries, hold some edges in one direction and others in both, and contain
loops. Whatever comes in, what goes out is the same object:

* an entry (u, v) stands for the undirected edge {u, v}, so both directions are stored;
* an edge that is given more than once is stored once;
* a loop (u, u) is kept, stored once: the paper's homophily counts loops, and a model that wants
  none removes them itself;
* columns are sorted by source, then target.

What was changed is counted in an :class:`EdgeReport`, so that it can be shown rather than hidden.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class EdgeReport(NamedTuple):
    """What the raw edge list held before it was made simple and undirected."""

    rows: int
    """Entries as given."""
    repeated: int
    """Entries that say again, in the same direction, what another entry says."""
    loops: int
    """Distinct loops (u, u)."""
    one_way: int
    """Distinct edges {u, v}, u ≠ v, that were given in one direction only."""
    edges: int
    """Distinct undirected edges {u, v}, loops counted."""


def simple_undirected(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int
) -> tuple[NDArray[np.int64], EdgeReport]:
    """Make an edge list simple and undirected.

    Args:
        source: Node numbers in [0, num_nodes), one an entry.
        target: Likewise.
        num_nodes: Number of nodes n.

    Returns:
        The ``edge_index`` (2 × E, both directions of each edge, sorted) and the report.
    """
    rows = len(source)
    pattern = _symmetric_pattern(source, target, num_nodes)
    indptr, neighbours, given = pattern.indptr, pattern.indices, pattern.data

    edge_index = np.empty((2, len(neighbours)), dtype=np.int64)
    edge_index[0] = np.repeat(np.arange(num_nodes), np.diff(indptr))
    edge_index[1] = neighbours

    directed = int(np.count_nonzero(given))
    loops = int(np.count_nonzero(edge_index[0] == edge_index[1]))
    edges = (len(neighbours) + loops) // 2
    one_way = 2 * (edges - loops) - (directed - loops)
    return edge_index, EdgeReport(rows, rows - directed, loops, one_way, edges)


def _symmetric_pattern(source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int) -> sp.csc_array:
    """All entries and their mirror images as one sparse matrix without repeats; True where the entry itself was given.

    A comparison sort of the entries would dominate the reading of a large graph. Bucketing by row and then by
    column is two linear passes and leaves both sorted; the pattern is symmetric, so CSC and CSR are the same arrays.
    """
    given = np.zeros(2 * len(source), dtype=bool)
    given[: len(source)] = True
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    entries = sp.coo_array((given, ends), shape=(num_nodes, num_nodes))
    entries.has_canonical_format = True  # repeats are summed below, once they lie side by side
    pattern = entries.tocsr().tocsc()
    pattern.sum_duplicates()
    return pattern
