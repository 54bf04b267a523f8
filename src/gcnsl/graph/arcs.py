"""What a graph keeps besides its simple, undirected edges: the directions and the weights that it was given.

The entry (u, v) of an edge list is an arc from u to v and may have a weight. Let W_uv be the sum of the weights of all
entries (u, v), so that repeated entries of one direction add up. Then

* ``arc_index`` (2 × E') lists the nonzero entries of W, sorted by source, then target, and ``arc_weight`` (E') their
  values;
* ``edge_weight`` (E) has the values of max(W, Wᵀ) in the order of ``edge_index``: an undirected edge weighs as much as
  the heavier of its two directions, so that a list with both directions of every edge does not count them twice.

Loops are kept, as in ``edge_index``.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.arrays import LARGEST_FLOAT, as_array

EDGE_FACTS = {
    "edge_weight": frozenset({"weights"}),
    "arc_index": frozenset({"directions"}),
    "arc_weight": frozenset({"weights", "directions"}),
}
"""What the attributes of a graph tell of its edges besides ``edge_index``; a method may use some of it."""

WEIGHT_RULE = "weights must be finite in float32 and > 0; change it, drop the edge, or load the graph without weights"


def edge_parts(graph: Data) -> dict[str, Tensor]:
    """Return what a graph knows of its edges, by name: ``edge_index``, and arcs and weights where it has them."""
    return {name: graph[name] for name in ("edge_index", *EDGE_FACTS) if name in graph}


def arcs_and_weights(
    source: NDArray[np.int32], target: NDArray[np.int32], num_nodes: int, *, directed: bool, weight: Any = None
) -> dict[str, Tensor]:
    """Return ``arc_index`` if the graph is directed, and ``edge_weight`` and ``arc_weight`` if it has weights.

    ``weight`` has one number for each entry of the edge list (E or E × 1).
    """
    entries = np.ones(len(source), dtype=bool) if weight is None else check_weights(weight, len(source))
    given = sp.coo_array((entries, (source, target)), shape=(num_nodes, num_nodes)).tocsr()
    parts: dict[str, Any] = {}
    if weight is not None:
        if given.nnz and given.data.max() > LARGEST_FLOAT:
            raise InputError("the weights of repeated edges add up to more than float32 can hold: use a larger unit")
        parts["edge_weight"] = given.maximum(given.T.tocsr()).data.astype(np.float32)
    if directed:
        parts["arc_index"] = np.stack(given.nonzero()).astype(np.int64)
        if weight is not None:
            parts["arc_weight"] = given.data.astype(np.float32)
    return {name: torch.from_numpy(values) for name, values in parts.items()}


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
