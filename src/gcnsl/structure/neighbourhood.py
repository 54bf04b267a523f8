"""Neighbours in the graph and in a latent space, with their directions, from positions in that space."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree
from torch import Tensor
from typing_extensions import Self

from gcnsl.errors import InputError

Positions = NDArray[np.float64]
Ints = NDArray[np.int64]

RELATIONS = 4
SPACES_AND_RELATIONS = 2 * RELATIONS


@dataclass(frozen=True)
class StructuralNeighbourhood:
    """The neighbours of every node, each in one of 8 divisions.

    Attributes:
        edge_index: Pairs of a node and a neighbour (2 × E, int64), without loops; neighbours in both spaces twice.
        division: Division of each pair (E, uint8): 0-3 for neighbours in the graph, 4-7 for neighbours in the latent
            space, plus 2·[the neighbour lies to the right] + [it lies above].
        how: How the neighbourhood was obtained, in one line.
    """

    edge_index: Tensor
    division: Tensor
    how: str

    def __post_init__(self) -> None:
        edges, division = self.edge_index, self.division
        if edges.dtype != torch.int64 or edges.shape != (2, division.numel()) or bool((edges < 0).any()):
            raise ValueError(f"edge_index ({edges.dtype}, {tuple(edges.shape)}) does not hold pairs of nodes")
        if division.dtype != torch.uint8 or division.ndim != 1 or bool((division >= SPACES_AND_RELATIONS).any()):
            raise ValueError(f"division ({division.dtype}, {tuple(division.shape)}) does not hold numbers from 0 to 7")

    def grown(self, graph: Any) -> NoReturn:
        """Raise an InputError: the embedding can't be extended to a changed graph."""
        raise InputError(
            "can't take new nodes or other edges: its latent space holds the nodes it was trained with; "
            "train it again on the grown graph, or use another method"
        )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors by name."""
        return {"how": self.how}, {"edge_index": self.edge_index, "division": self.division}

    @classmethod
    def from_state(cls, plain: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The neighbourhood with this state; raises a KeyError or ValueError if the state is damaged."""
        return cls(tensors["edge_index"], tensors["division"], plain["how"])


def neighbourhood(
    adjacency: sp.csr_array, positions: Positions, *, hyperbolic: bool = False
) -> tuple[Ints, NDArray[np.uint8]]:
    """Pairs (2 × E) and their divisions (E), see :class:`StructuralNeighbourhood`.

    Two nodes are neighbours in the latent space if their distance is at most ρ, the largest radius that gives at most
    as many neighbours as the graph has.

    Args:
        adjacency: The graph (n × n), without loops.
        positions: Positions in the plane (n × 2). A node with NaN has no neighbours in the latent space.
        hyperbolic: Whether positions are in the unit disc, with hyperbolic distances (Poincaré's model).
    """
    graph = np.stack(adjacency.nonzero()).astype(np.int64)
    latent = _closest_pairs(positions, graph.shape[1], hyperbolic=hyperbolic)
    pairs = np.concatenate([graph, latent], axis=1)
    space = np.repeat([0, 1], [graph.shape[1], latent.shape[1]])
    right, above = (positions[pairs[1]] > positions[pairs[0]]).T
    return pairs, (RELATIONS * space + 2 * right + above).astype(np.uint8)


def _closest_pairs(positions: Positions, count: int, *, hyperbolic: bool) -> Ints:
    """The ordered pairs of nodes at most ρ apart (2 × E), for the largest ρ that gives at most ``count`` pairs."""
    nodes = np.flatnonzero(~np.isnan(positions).any(axis=1))
    points = positions[nodes]
    if not len(nodes):
        return np.empty((2, 0), dtype=np.int64)
    tree = KDTree(points)
    places, crowd = np.unique(points, axis=0, return_counts=True)  # in a star, nearly all nodes are at one place
    place_tree = KDTree(places)

    def within(radius: float, **options: Any) -> Any:
        centres, reach = _disc(points, radius) if hyperbolic else (points, radius)
        return tree.query_ball_point(centres, reach, **options)

    def found(radius: float) -> int:
        if hyperbolic:
            return int(within(radius, return_length=True).sum()) - len(nodes)
        return int(place_tree.count_neighbors(place_tree, radius, weights=(crowd, crowd))) - len(nodes)

    low, high = 0.0, float(np.linalg.norm(np.ptp(points, axis=0))) + 1.0  # at least the distance of any two nodes
    if hyperbolic:
        high = 4 * float(np.arctanh(np.linalg.norm(points, axis=1).max())) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) <= count else (low, middle)
    if found(low) > count:  # more pairs than that coincide
        return np.empty((2, 0), dtype=np.int64)
    others = within(low, return_sorted=True)
    source = np.repeat(np.arange(len(nodes)), [len(near) for near in others])
    target = np.concatenate([np.asarray(near, dtype=np.int64) for near in others])
    apart = source != target
    return np.stack([nodes[source[apart]], nodes[target[apart]]])


def _disc(points: Positions, radius: float) -> tuple[Positions, NDArray[np.float64]]:
    """The Euclidean centre and radius of the hyperbolic disc of this radius around each point v.

    With t = tanh(radius / 2), the centre is (1 - t²) / (1 - t²|v|²) v and the radius t (1 - |v|²) / (1 - t²|v|²).
    """
    t = np.tanh(radius / 2)
    square = (points**2).sum(axis=1)
    shrink = 1 / (1 - t**2 * square)
    return ((1 - t**2) * shrink)[:, None] * points, t * (1 - square) * shrink


def as_tensors(pairs: Ints, division: NDArray[np.uint8], how: str) -> StructuralNeighbourhood:
    """The neighbourhood with these arrays as tensors."""
    return StructuralNeighbourhood(torch.from_numpy(pairs.astype(np.int64)), torch.from_numpy(division), how)
