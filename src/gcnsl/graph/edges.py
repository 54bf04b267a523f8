"""The edges of a graph: simple and undirected, and beside them the directions and weights that were given.

Raw edge lists repeat entries, list some edges in one direction and others in both, and contain loops. ``edge_index`` is
made uniform by one rule:

* an entry (u, v) stands for the undirected edge {u, v}, which is stored in both directions;
* an edge that is listed several times is stored once;
* a loop (u, u) is kept and stored once: the paper's homophily counts loops, and models that want none remove them;
* edges are sorted by source, then target.

An :class:`EdgeReport` counts what was changed. Where the caller asks for directions or weights, they are kept as well.
The entry (u, v) is then an arc from u to v. Let W_uv be the sum of the weights of all entries (u, v), so that repeated
entries of one direction add up:

* ``arc_index`` (2 × E') lists the nonzero entries of W, sorted by source, then target, and ``arc_weight`` (E') their
  values;
* ``edge_weight`` (E) has the values of max(W, Wᵀ) in the order of ``edge_index``: an undirected edge weighs as much as
  the heavier of its two directions, so that a list with both directions of every edge does not count them twice.

If edges are of R relations, ``edge_relations`` (E × R) and ``arc_relations`` (E' × R) hold the same values made of the
entries of each relation alone, 0 for an edge that is not of it; without weights they are 0 and 1.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.checks import LARGEST_FLOAT, as_array
from gcnsl.errors import InputError

EDGE_FACTS = {
    "edge_weight": frozenset({"weights"}),
    "arc_index": frozenset({"directions"}),
    "arc_weight": frozenset({"weights", "directions"}),
    "edge_relations": frozenset({"kinds"}),
    "arc_relations": frozenset({"kinds", "directions"}),
}
"""What the attributes of a graph tell of its edges besides ``edge_index``; a method may use some of it."""
ALONG = {"edge_index": ("edge_weight", "edge_relations"), "arc_index": ("arc_weight", "arc_relations")}
"""The attributes with a row for each edge, or for each arc."""

WEIGHT_RULE = "weights must be finite in float32 and > 0; change it, drop the edge, or load the graph without weights"


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
    given = _distinct(source.astype(np.int64) * num_nodes + target)  # sorting numbers is what NumPy is fastest at
    first, second = _ends(given, num_nodes)
    both = _distinct(np.concatenate([given, second * num_nodes + first]))
    loops = int(np.count_nonzero(first == second))
    edges = (len(both) + loops) // 2
    one_way = 2 * (edges - loops) - (len(given) - loops)
    report = EdgeReport(len(source), len(source) - len(given), loops, one_way, edges)
    return _ends(both, num_nodes), report


def _ends(numbers: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """The nodes u and v (2 × k) of numbers u n + v; ``numpy.divmod`` is not vectorised and takes ten times as long."""
    ends = np.empty((2, len(numbers)), dtype=np.int64)
    np.floor_divide(numbers, max(num_nodes, 1), out=ends[0])
    np.multiply(ends[0], -num_nodes, out=ends[1])
    ends[1] += numbers
    return ends


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each number once, in ascending order; numbers are sorted in place, which ``numpy.unique`` does not."""
    numbers.sort()
    is_first = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return numbers[is_first]


def report_edges(graph: Data) -> EdgeReport:
    """The counts of a checked graph's edges, or of its arcs if it has some."""
    source, target = graph.get("arc_index", graph.edge_index).cpu().numpy().astype(np.int32)
    return simple_undirected(source, target, graph.num_nodes)[1]


def edge_parts(graph: Data) -> dict[str, Tensor]:
    """Return what a graph knows of its edges, by name: ``edge_index``, and arcs and weights where it has them."""
    return {name: graph[name] for name in ("edge_index", *EDGE_FACTS) if name in graph}


def arcs_and_weights(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int, *, directed: bool, weight: Any = None
) -> dict[str, Tensor]:
    """Return ``arc_index`` if the graph is directed, and ``edge_weight`` and ``arc_weight`` if it has weights.

    ``weight`` has one number for each entry of the edge list (E or E × 1).
    """
    if weight is None and not directed:
        return {}
    entries = np.ones(len(source), dtype=bool) if weight is None else check_weights(weight, len(source))
    given = sp.coo_array((entries, (source, target)), shape=(num_nodes, num_nodes)).tocsr()
    parts: dict[str, Any] = {}
    if weight is not None:
        if given.nnz and given.data.max() > LARGEST_FLOAT:
            raise InputError("the weights of repeated edges add up to more than float32 can hold: use a larger unit")
        parts["edge_weight"] = given.maximum(given.T.tocsr()).data.astype(np.float32)
    if directed:
        parts["arc_index"] = np.stack(given.tocoo().coords).astype(np.int64)
        if weight is not None:
            parts["arc_weight"] = given.data.astype(np.float32)
    return {name: torch.from_numpy(values) for name, values in parts.items()}


def edges_by_relation(
    graph: Data, ends: NDArray[np.int32], relation: NDArray[np.int64], count: int, weight: Any = None
) -> dict[str, Tensor]:
    """Return ``edge_relations`` and, if the graph is directed, ``arc_relations``, of the entries that it was made of.

    The entries have two ends (2 × E), one of ``count`` relations, or -1 for none (E), and perhaps a weight (E).
    """
    n, parts, places = graph.num_nodes, {}, {}
    for kind in ("edge", "arc"):
        if f"{kind}_index" in graph:
            index = graph[f"{kind}_index"].numpy()
            places[kind] = index[0] * n + index[1]
            parts[f"{kind}_relations"] = torch.zeros(index.shape[1], count, dtype=torch.float32)
    for number in range(count):
        rows = relation == number
        entries = np.ones(int(rows.sum()), dtype=bool) if weight is None else weight[rows]
        arcs = sp.coo_array((entries, ends[:, rows]), shape=(n, n)).tocsr()
        for kind, keys in places.items():
            found = (arcs.maximum(arcs.T.tocsr()) if kind == "edge" else arcs).tocoo()
            where = np.searchsorted(keys, found.coords[0].astype(np.int64) * n + found.coords[1])
            parts[f"{kind}_relations"][where, number] = torch.from_numpy(found.data.astype(np.float32))
    return parts


def check_weights(weight: Any, count: int) -> NDArray[np.float64]:
    """Return the weights of an edge list with this number of entries (E), if all can be used."""
    values = as_array(weight, "edge_weight")
    if values.shape == (count, 1):
        values = values[:, 0]
    if values.shape != (count,) or values.dtype.kind not in "biuf":
        raise InputError(
            f"edge_weight has shape {values.shape} and dtype {values.dtype}: give a number for each of {count} edges"
        )
    bad = unusable_weights(values)
    if bad.any():
        place = int(bad.argmax())
        raise InputError(f"edge_weight[{place}] is {values[place]}: {WEIGHT_RULE}")
    return values.astype(np.float64, copy=False)


def unusable_weights(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which weights (E) are not finite and positive in float32."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return ~((single > 0) & (single <= LARGEST_FLOAT))
