"""From positions in the plane to neighbours in graph and latent space, with the direction each lies in."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree
from torch import Tensor

Positions = NDArray[np.float64]
Ints = NDArray[np.int64]

RELATIONS = 4
SPACES_AND_RELATIONS = 2 * RELATIONS
HALVINGS = 50
"""Steps to the radius, each of which halves the doubt about it."""


@dataclass(frozen=True)
class StructuralNeighbourhood:
    """Who is whose neighbour, in which of the 8 divisions, and how that was found.

    Attributes:
        edge_index: Ordered pairs of a node and a neighbour (2 × E), no loops. A pair may be there twice, as neighbours
            in the graph and in the latent space.
        division: Of each pair (E): 0-3 are neighbours in the graph, 4-7 in the latent space, and within these 2·[the
            neighbour lies to the right] + [it lies above].
        how: One line for the reader of a result.
    """

    edge_index: Tensor
    division: Tensor
    how: str


def neighbourhood(
    adjacency: sp.csr_array, positions: Positions, *, hyperbolic: bool = False
) -> tuple[Ints, NDArray[np.uint8]]:
    """Pairs (2 × E) and their divisions (E), see :class:`StructuralNeighbourhood`.

    Neighbours in the latent space are nodes at most ρ apart; ρ is the largest radius for which there are on average no
    more of them than of neighbours in the graph.

    Args:
        adjacency: The graph (n × n), without loops.
        positions: In the plane (n × 2), or in the unit disc of Poincaré's model; NaN for a node that has none, which
            then has no neighbours in the latent space.
        hyperbolic: Whether distances are those of the unit disc.
    """
    graph = np.stack(adjacency.nonzero()).astype(np.int64)
    latent = _closest_pairs(positions, graph.shape[1], hyperbolic=hyperbolic)
    pairs = np.concatenate([graph, latent], axis=1)
    space = np.repeat([0, 1], [graph.shape[1], latent.shape[1]])
    return pairs, (RELATIONS * space + _relation(positions, pairs)).astype(np.uint8)


def _relation(positions: Positions, pairs: Ints) -> Ints:
    """In which quadrant around the first node of a pair the second one lies."""
    ahead = positions[pairs[1]] > positions[pairs[0]]
    relation: Ints = 2 * ahead[:, 0].astype(np.int64) + ahead[:, 1]
    return relation


def _closest_pairs(positions: Positions, count: int, *, hyperbolic: bool) -> Ints:
    """The ordered pairs (2 × E) of nodes within ρ, for the largest ρ that gives at most ``count`` of them."""
    nodes = np.flatnonzero(~np.isnan(positions).any(axis=1))
    points = positions[nodes]
    if not len(nodes):
        return np.empty((2, 0), dtype=np.int64)
    tree = KDTree(points)

    def within(radius: float, **options: Any) -> Any:
        centres, reach = _disc(points, radius) if hyperbolic else (points, radius)
        return tree.query_ball_point(centres, reach, **options)

    low, high = 0.0, _widest(points, hyperbolic=hyperbolic)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = int(within(middle, return_length=True).sum()) - len(nodes)
        low, high = (middle, high) if found <= count else (low, middle)
    others = within(low, return_sorted=True)
    source = np.repeat(np.arange(len(nodes)), [len(found) for found in others])
    target = np.concatenate([np.asarray(found, dtype=np.int64) for found in others])
    apart = source != target
    pairs = np.stack([nodes[source[apart]], nodes[target[apart]]])
    return pairs if pairs.shape[1] <= count else pairs[:, :0]  # more than that many nodes in one place


def _widest(points: Positions, *, hyperbolic: bool) -> float:
    """A radius within which all nodes are."""
    if not hyperbolic:
        return float(np.linalg.norm(np.ptp(points, axis=0))) + 1.0
    return 4 * float(np.arctanh(np.linalg.norm(points, axis=1).max())) + 1.0


def _disc(points: Positions, radius: float) -> tuple[Positions, NDArray[np.float64]]:
    """The hyperbolic disc of that radius around each point is a Euclidean one: its centre and radius.

    With t = tanh(radius / 2): centre (1 - t²) / (1 - t²|v|²) v, radius t (1 - |v|²) / (1 - t²|v|²).
    """
    t = np.tanh(radius / 2)
    square = (points**2).sum(axis=1)
    shrink = 1 / (1 - t**2 * square)
    return ((1 - t**2) * shrink)[:, None] * points, t * (1 - square) * shrink


def as_tensors(pairs: Ints, division: NDArray[np.uint8], how: str) -> StructuralNeighbourhood:
    """The neighbourhood as models read it."""
    return StructuralNeighbourhood(torch.from_numpy(pairs.astype(np.int64)), torch.from_numpy(division), how)
