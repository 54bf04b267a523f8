"""The three embeddings of Geom-GCN by name, and their approximations for large graphs."""

import warnings
from typing import Literal

import scipy.sparse as sp

from gcnsl.structure.isomap import isomap
from gcnsl.structure.neighbourhood import Positions
from gcnsl.structure.poincare import poincare

Embedding = Literal["isomap", "poincare", "struc2vec"]

EXACT_NODES, LANDMARKS = 6_000, 500
"""Isomap stores the distances of all pairs several times: 0.3 GB each for 6,000 nodes."""

EXACT_EDGES, DRAWN_EDGES = 200_000, 100_000
"""The Poincaré embedding processes about 20,000 directed edges per second, 50 times each."""

FULL_NODES, FULL_LAYERS, FEW_LAYERS = 30_000, 5, 2
"""struc2vec visits all nodes within this many steps of every node, which are soon most of the graph."""


def embed(adjacency: sp.csr_array, embedding: Embedding) -> tuple[Positions, str]:
    """Positions of the nodes (n × 2), and how they were computed: exactly or, for large graphs, approximately.

    The graph (n × n) is symmetric and without loops. A warning tells of an approximation.
    """
    n, edges = adjacency.shape[0], adjacency.nnz
    if embedding == "isomap":
        landmarks = None if n <= EXACT_NODES else LANDMARKS
        how = _how(landmarks is None, "isomap", f"{n} nodes", f"{LANDMARKS} of them as landmarks")
        return isomap(adjacency, landmarks=landmarks), how
    if embedding == "poincare":
        drawn = None if edges <= EXACT_EDGES else DRAWN_EDGES
        how = _how(drawn is None, "poincare", f"{edges} directed edges", f"{DRAWN_EDGES} of them, drawn at random")
        return poincare(adjacency, edges=drawn), how
    from gcnsl.structure.struc2vec import struc2vec  # imports numba, which takes a while

    layers = FULL_LAYERS if n <= FULL_NODES else FEW_LAYERS
    how = _how(layers == FULL_LAYERS, "struc2vec", f"{n} nodes", f"distances up to {FEW_LAYERS}, not {FULL_LAYERS}")
    return struc2vec(adjacency, layers=layers), how


def _how(exact: bool, name: str, size: str, instead: str) -> str:
    if exact:
        return name
    from gcnsl.graph import GraphWarning

    warnings.warn(f"{size} are too many for the exact {name} embedding: using {instead}", GraphWarning, stacklevel=4)
    return f"{name} with {instead}"
