"""Isomap: positions whose distances approximate the lengths of the shortest paths in the graph."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.decomposition import KernelPCA

from gcnsl.structure.neighbourhood import Positions


def isomap(adjacency: sp.csr_array, *, landmarks: int | None = None, seed: int = 0) -> Positions:
    """Positions of the nodes in the plane (n × 2).

    There are no paths between components. Each one is embedded separately, and they are placed side by side, further
    apart than any two nodes of the same component.

    In a component with more than ``landmarks`` nodes, only this many random nodes are embedded exactly; the others are
    placed by their distances to these (de Silva and Tenenbaum, 2002). None embeds all exactly: n² distances.
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
    """Classical multidimensional scaling of the distances to the landmarks of one component."""
    n = adjacency.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    chosen = np.arange(n) if landmarks is None or n <= landmarks else rng.choice(n, landmarks, replace=False)
    kernel = -0.5 * shortest_path(adjacency, directed=False, unweighted=True, indices=chosen).T ** 2
    solver = "dense" if len(chosen) <= 200 else "arpack"  # for few, all eigenvectors are faster than the first two
    scaling = KernelPCA(2, kernel="precomputed", eigen_solver=solver, random_state=0).fit(kernel[chosen])
    positions: Positions = scaling.transform(kernel)
    return positions
