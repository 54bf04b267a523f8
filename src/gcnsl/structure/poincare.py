"""Poincaré embedding: positions in the hyperbolic disc, where there is room for trees."""

import numpy as np
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.structure.neighbourhood import Ints, Positions

EPOCHS = 50
BATCH = 50


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
    pairs = np.stack(adjacency.nonzero())
    if edges is not None and pairs.shape[1] > edges:
        pairs = _sample(pairs, edges, np.random.default_rng(seed))
    positions = np.full((adjacency.shape[0], 2), np.nan)
    if pairs.shape[1]:
        model = PoincareModel([(u, v) for u, v in pairs.T.tolist()], size=2, negative=5, seed=seed)
        model.train(epochs=EPOCHS, batch_size=BATCH)
        positions[model.kv.index_to_key] = model.kv.vectors
    return positions


def _sample(pairs: Ints, count: int, rng: np.random.Generator) -> Ints:
    """So many of the pairs (2 × E, the first node in order), and one of each first node in any case."""
    shuffled = pairs[:, rng.permutation(pairs.shape[1])]
    _, first = np.unique(shuffled[0], return_index=True)
    kept = np.union1d(first, np.arange(count))
    return shuffled[:, kept]
