"""Isomap: positions whose distances are those of the graph, the lengths of its shortest paths."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.decomposition import KernelPCA

from gcnsl.structure.neighbourhood import Positions

DENSE_NODES = 200
"""Up to this many, all eigenvectors are found faster than the first two."""


def isomap(adjacency: sp.csr_array, *, landmarks: int | None = None, seed: int = 0) -> Positions:
    """Positions in the plane (n × 2) of the nodes of a graph (n × n, symmetric, without loops).

    Between components there are no paths. Each is embedded by itself and they are laid side by side, further apart than
    any two nodes of one.

    Args:
        adjacency: The graph.
        landmarks: Of a component with more nodes than this, so many are drawn and embedded exactly, and the others put
            where their distances to those place them (de Silva and Tenenbaum, 2002). None: all nodes exactly, with
            n² distances.
        seed: Of the draw.
    """
    rng = np.random.default_rng(seed)
    _, component = connected_components(adjacency, directed=False)
    parts = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    placed = [_place(adjacency[nodes][:, nodes], landmarks, rng) for nodes in parts]

    gap = 1 + max(float(np.linalg.norm(np.ptp(part, axis=0))) for part in placed)
    positions, left = np.empty((len(component), 2)), 0.0
    for nodes, part in zip(parts, placed, strict=True):
        positions[nodes] = part + np.array([left - part[:, 0].min(), 0])
        left += float(np.ptp(part[:, 0])) + gap
    return positions


def _place(adjacency: sp.csr_array, landmarks: int | None, rng: np.random.Generator) -> Positions:
    """Classical scaling of the distances to the landmarks: what Isomap does after it has found them."""
    n = adjacency.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    chosen = np.arange(n) if landmarks is None or n <= landmarks else rng.choice(n, landmarks, replace=False)
    kernel = -0.5 * shortest_path(adjacency, directed=False, unweighted=True, indices=chosen).T ** 2
    solver = "dense" if len(chosen) <= DENSE_NODES else "arpack"
    scaling = KernelPCA(2, kernel="precomputed", eigen_solver=solver, random_state=0).fit(kernel[chosen])
    positions: Positions = scaling.transform(kernel)
    return positions
