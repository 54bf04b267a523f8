"""Poincaré embedding: positions in the hyperbolic disc, which has room for trees."""

import numpy as np
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.structure.neighbourhood import Positions

EPOCHS = 50
BATCH = 50
NEGATIVE = 5
"""Number of negative samples per pair: nodes that are not neighbours of its first node."""


def poincare(adjacency: sp.csr_array, *, edges: int | None = None, seed: int = 0) -> Positions:
    """Positions of the nodes in the unit disc (n × 2), computed by gensim; NaN for nodes without neighbours.

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
