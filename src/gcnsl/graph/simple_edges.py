"""The ``edge_index`` of every graph is simple and undirected.

Raw edge lists repeat entries, list some edges in one direction and others in both, and contain loops. They are made
uniform by one rule:

* an entry (u, v) stands for the undirected edge {u, v}, which is stored in both directions;
* an edge that is listed several times is stored once;
* a loop (u, u) is kept and stored once: the paper's homophily counts loops, and models that want none remove them;
* edges are sorted by source, then target.

An :class:`EdgeReport` counts what was changed. Directions and weights are kept beside these edges where the caller asks
for them: see :mod:`gcnsl.graph.arcs`.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnsl.errors import InputError
from gcnsl.graph.arrays import as_array

COMPILED_FROM = 1_000_000
"""Number of entries from which compiled code is faster, although it has to be loaded first."""


class EdgeReport(NamedTuple):
    """Counts of the raw edge list."""

    rows: int
    """Entries."""
    repeated: int
    """Entries that repeat an earlier one in the same direction."""
    loops: int
    """Distinct loops (u, u)."""
    one_way: int
    """Distinct edges {u, v}, u ≠ v, that are listed in one direction only."""
    edges: int
    """Distinct undirected edges {u, v}, including loops."""


def check_edges(edge_index: Any, num_nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Check a 2 × E edge list and return its sources and targets (E each), all in [0, num_nodes)."""
    ends = as_array(edge_index, "edge_index")
    if ends.size == 0:
        ends = np.empty((2, 0), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[0] != 2:
        hint = "; transpose it" if ends.ndim == 2 and ends.shape[1] == 2 else ""
        raise InputError(f"edge_index has shape {ends.shape}: give 2 rows, sources and targets{hint}")
    if ends.dtype.kind not in "iu":
        raise InputError(f"edge_index has dtype {ends.dtype}: give integer node numbers from 0 to {num_nodes - 1}")
    if ends.size and (ends.min() < 0 or ends.max() >= num_nodes):
        side, column = (int(i) for i in np.argwhere((ends < 0) | (ends >= num_nodes))[0])
        raise InputError(
            f"edge_index[{side}, {column}] is {ends[side, column]}, but there are {num_nodes} nodes, numbered from 0 "
            f"to {num_nodes - 1}; drop the edge or add the node"
        )
    return ends[0].astype(np.int32, copy=False), ends[1].astype(np.int32, copy=False)


def simple_undirected(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int
) -> tuple[NDArray[np.int64], EdgeReport]:
    """Return the ``edge_index`` (2 × E, both directions of each edge, sorted) of an edge list, and the report."""
    if len(source) >= COMPILED_FROM:
        from gcnsl.graph.bucketing import merge_edges  # imports numba, which takes longer than a small graph
    else:
        merge_edges = merge_by_matrices
    edge_index, directed = merge_edges(source, target, num_nodes)
    loops = int(np.count_nonzero(edge_index[0] == edge_index[1]))
    edges = (edge_index.shape[1] + loops) // 2
    one_way = 2 * (edges - loops) - (directed - loops)
    return edge_index, EdgeReport(len(source), len(source) - directed, loops, one_way, edges)


def merge_by_matrices(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int
) -> tuple[NDArray[np.int64], int]:
    """Return the entries of A + Aᵀ, sorted (2 × E), and the number of distinct entries of A.

    A sort by comparisons would take most of the time of reading a large graph. Bucketing by target and then by source
    takes two linear passes, because the second keeps the order of the first within each bucket.
    """
    transposed = sp.coo_array((np.ones(len(source), dtype=bool), (target, source)), shape=(num_nodes, num_nodes))
    transposed.has_canonical_format = True  # not yet true: this avoids a sort, and repeats are dropped below
    by_source = transposed.tocsr().tocsc()
    by_source.sum_duplicates()
    given = by_source.T
    both = (given + given.tocsc().T).tocoo()
    return np.stack([both.row, both.col]).astype(np.int64), given.nnz
