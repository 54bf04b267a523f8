"""Poincaré embedding: positions in the hyperbolic disc, where there is room for trees."""

import numpy as np
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.structure.neighbourhood import Ints, Positions

EPOCHS = 50
BATCH = 50
NEGATIVE = 5
"""Nodes that a pair is set against, none of them a neighbour of its first node."""


def poincare(adjacency: sp.csr_array, *, edges: int | None = None, seed: int = 0) -> Positions:
    """Positions in the unit disc (n × 2) of the nodes of a graph (n × n, symmetric, without loops), by gensim.

    A node without neighbours has no position: NaN.

    Args:
        adjacency: The graph.
        edges: Learn from at most about this many edges, drawn so that every node keeps one. None: from all.
        seed: Of the draw, and of the embedding.
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
    """The ordered pairs of neighbours (2 × E), but of no node more than ``most``: gensim must find others, too."""
    node, neighbour = adjacency.nonzero()
    rank = np.arange(len(node)) - adjacency.indptr[node]
    return np.stack([node, neighbour])[:, rank < most]


def _sample(pairs: Ints, count: int, rng: np.random.Generator) -> Ints:
    """So many of the pairs (2 × E, the first node in order), and one of each first node in any case."""
    shuffled = pairs[:, rng.permutation(pairs.shape[1])]
    _, first = np.unique(shuffled[0], return_index=True)
    kept = np.union1d(first, np.arange(count))
    return shuffled[:, kept]
