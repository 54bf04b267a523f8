"""Poincaré embedding: positions in the hyperbolic disc, which has room for trees."""

import numpy as np
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.structure.neighbourhood import Ints, Positions

EPOCHS = 50
BATCH = 50
NEGATIVE = 5
"""Number of negative samples per pair: nodes that are not neighbours of its first node."""


def poincare(adjacency: sp.csr_array, *, edges: int | None = None, seed: int = 0) -> Positions:
    """Positions of the nodes in the unit disc (n × 2), computed by gensim; NaN for nodes without neighbours.

    Args:
        adjacency: The graph (n × n, symmetric, without loops).
        edges: Train on about this many random directed edges, at least one per node. None trains on all.
        seed: Seed for the choice of edges and for the training.
    """
    try:
        from gensim.models.poincare import PoincareModel
    except ModuleNotFoundError as error:
        raise InputError("embedding('poincare') needs gensim: pip install 'gcnsl[geom]'") from error
    positions = np.full((adjacency.shape[0], 2), np.nan)
    known = int((np.diff(adjacency.indptr) > 0).sum())
    negative = NEGATIVE if known > 2 * NEGATIVE else 1
    pairs = _leave_room(adjacency, known - negative)
    if edges is not None and pairs.shape[1] > edges:
        pairs = _sample(pairs, edges, np.random.default_rng(seed))
    if known:
        model = PoincareModel([(u, v) for u, v in pairs.T.tolist()], size=2, negative=negative, seed=seed)
        model.train(epochs=EPOCHS, batch_size=BATCH)
        positions[model.kv.index_to_key] = model.kv.vectors
    return positions


def _leave_room(adjacency: sp.csr_array, most: int) -> Ints:
    """Directed edges (2 × E), at most ``most`` per source: gensim also needs nodes that are not neighbours."""
    node, neighbour = adjacency.nonzero()
    rank = np.arange(len(node)) - adjacency.indptr[node]
    return np.stack([node, neighbour])[:, rank < most]


def _sample(pairs: Ints, count: int, rng: np.random.Generator) -> Ints:
    """A random sample of ``count`` pairs (2 × E), plus one pair for every first node that it misses."""
    shuffled = pairs[:, rng.permutation(pairs.shape[1])]
    _, first = np.unique(shuffled[0], return_index=True)
    kept = np.union1d(first, np.arange(count))
    return shuffled[:, kept]
