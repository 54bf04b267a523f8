"""Embeddings of a graph's nodes in two dimensions: Isomap in the plane, Poincaré's in the hyperbolic disc."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.sparse.linalg import eigsh
from sklearn.preprocessing import KernelCenterer
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip

from gcnsl.errors import InputError

Positions = NDArray[np.float64]

FROM_AT_ONCE, BLOCK_ROWS = 64, 1 << 14
"""Landmarks whose paths are sought, and nodes that are placed, at a time."""
FEW = 200
EPOCHS, BATCH = 50, 50
NEGATIVE = 5
"""Number of negative samples per pair of Poincaré's embedding: nodes that are not neighbours of its first node."""


def isomap(adjacency: sp.csr_array, *, landmarks: int | None = None, seed: int = 0) -> Positions:
    """Positions of the nodes in the plane (n × 2) whose distances approximate the lengths of the shortest paths.

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
    distance = np.empty((n, len(chosen)), np.float32)  # whole numbers
    for part in np.array_split(np.arange(len(chosen)), -(-len(chosen) // FROM_AT_ONCE)):
        distance[:, part] = shortest_path(adjacency, directed=False, unweighted=True, indices=chosen[part]).T
    kernel = -0.5 * distance[chosen].astype(np.float64) ** 2
    centre = KernelCenterer().fit(kernel)
    values, vectors = _two_leading(centre.transform(kernel))
    scaled = vectors / np.sqrt(np.where(values > 1e-12 * values[0], values, np.inf))
    blocks = np.array_split(distance, -(-n // BLOCK_ROWS))
    return np.concatenate([centre.transform(-0.5 * block.astype(np.float64) ** 2) @ scaled for block in blocks])


def _two_leading(kernel: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two largest eigenvalues, the largest first, and their eigenvectors (n × 2); of few, all are computed.

    In a star or a clique all eigenvalues are equal but one, and LAPACK finds none of them if only two are asked for.
    """
    if len(kernel) <= FEW:
        values, vectors = eigh(kernel, driver="evd")
    else:
        values, vectors = eigsh(kernel, 2, which="LA", v0=check_random_state(0).uniform(-1, 1, len(kernel)))
    order = np.argsort(values)[:-3:-1]
    vectors, _ = svd_flip(vectors[:, order], None)  # signs that do not depend on the solver
    return values[order], vectors


def poincare(adjacency: sp.csr_array, *, edges: int | None = None, seed: int = 0) -> Positions:
    """Positions of the nodes in the unit disc (n × 2), by gensim; NaN for nodes without neighbours.

    The graph is symmetric and without loops. If ``edges`` is given, the training uses about this many random directed
    edges, at least one per node.
    """
    try:
        from gensim.models.poincare import PoincareModel
    except ModuleNotFoundError as error:
        raise InputError("embedding('poincare') needs gensim: pip install 'gcnsl[geom]'") from error
    positions = np.full((adjacency.shape[0], 2), np.nan)
    known = int((np.diff(adjacency.indptr) > 0).sum())
    negative = NEGATIVE if known > 2 * NEGATIVE else 1
    node, neighbour = adjacency.nonzero()
    rank = np.arange(len(node)) - adjacency.indptr[node]
    pairs = np.stack([node, neighbour])[:, rank < known - negative]  # gensim also needs nodes that are not neighbours
    if edges is not None and pairs.shape[1] > edges:
        pairs = pairs[:, np.random.default_rng(seed).permutation(pairs.shape[1])]
        _, first = np.unique(pairs[0], return_index=True)
        pairs = pairs[:, np.union1d(first, np.arange(edges))]
    if known:
        model = PoincareModel([(u, v) for u, v in pairs.T.tolist()], size=2, negative=negative, seed=seed)
        model.train(epochs=EPOCHS, batch_size=BATCH)
        positions[model.kv.index_to_key] = model.kv.vectors
    return positions
