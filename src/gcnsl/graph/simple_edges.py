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

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

HAS_NUMBA = find_spec("numba") is not None
COMPILED_FROM = 1_000_000
"""From so many entries on, compiled passes save more than loading them takes."""


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
    large = len(source) >= COMPILED_FROM and HAS_NUMBA
    edge_index, directed = (_merge_compiled if large else merge_by_matrices)(source, target, num_nodes)
    loops = int(np.count_nonzero(edge_index[0] == edge_index[1]))
    edges = (edge_index.shape[1] + loops) // 2
    one_way = 2 * (edges - loops) - (directed - loops)
    return edge_index, EdgeReport(len(source), len(source) - directed, loops, one_way, edges)


def _merge_compiled(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int
) -> tuple[NDArray[np.int64], int]:
    from gcnsl.graph.bucketing import merge_edges

    return merge_edges(source, target, num_nodes)


def merge_by_matrices(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int
) -> tuple[NDArray[np.int64], int]:
    """The distinct edges in both directions, sorted (2 × E), and the number of distinct entries given: A + Aᵀ."""
    given = _distinct_sorted(source, target, num_nodes)
    both = (given + given.tocsc().T).tocoo()
    return np.stack([both.row, both.col]).astype(np.int64), given.nnz


def _distinct_sorted(source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int) -> sp.csr_array:
    """The distinct entries as a boolean matrix (n × n), sorted by source, then target.

    A comparison sort would dominate the reading of a large graph. Bucketing by target and then by source is two
    linear passes, and the second keeps the order of the first within each bucket.
    """
    transposed = sp.coo_array((np.ones(len(source), dtype=bool), (target, source)), shape=(num_nodes, num_nodes))
    transposed.has_canonical_format = True  # not true yet: it spares a sort here, and the repeats are dropped below
    buckets = transposed.tocsr().tocsc()
    buckets.sum_duplicates()
    return buckets.T
