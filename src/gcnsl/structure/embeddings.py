"""The three embeddings of Geom-GCN by name, and what is done where a graph is too large for one."""

import warnings
from typing import Literal, NamedTuple

import scipy.sparse as sp

from gcnsl.structure.isomap import isomap
from gcnsl.structure.neighbourhood import Positions
from gcnsl.structure.poincare import poincare

Embedding = Literal["isomap", "poincare", "struc2vec"]

EXACT_NODES, LANDMARKS = 6_000, 500
"""Isomap keeps the distances of all pairs: 0.3 GB for so many nodes, several times over."""

EXACT_EDGES, DRAWN_EDGES = 200_000, 100_000
"""Poincaré's embedding learns from some 20,000 ordered edges a second, 50 times from each."""

FULL_NODES, FULL_LAYERS, FEW_LAYERS = 30_000, 5, 2
"""struc2vec visits everything within so many steps of every node, soon most of the graph."""


class Embedded(NamedTuple):
    """Where the nodes are (n × 2), whether that is in the hyperbolic disc, and how it was found, for the reader."""

    positions: Positions
    hyperbolic: bool
    how: str


def embed(adjacency: sp.csr_array, embedding: Embedding) -> Embedded:
    """Embed a graph (n × n, symmetric, without loops), exactly or, with a warning, as well as its size allows."""
    n, edges = adjacency.shape[0], adjacency.nnz
    if embedding == "isomap":
        landmarks = None if n <= EXACT_NODES else LANDMARKS
        how = _how(landmarks is None, "isomap", f"{n} nodes", f"{LANDMARKS} of them as landmarks")
        return Embedded(isomap(adjacency, landmarks=landmarks), False, how)
    if embedding == "poincare":
        drawn = None if edges <= EXACT_EDGES else DRAWN_EDGES
        how = _how(drawn is None, "poincare", f"{edges} ordered edges", f"{DRAWN_EDGES} of them, drawn")
        return Embedded(poincare(adjacency, edges=drawn), True, how)
    from gcnsl.structure.struc2vec import struc2vec  # compiled: not everyone who imports models has the compiler

    layers = FULL_LAYERS if n <= FULL_NODES else FEW_LAYERS
    how = _how(
        layers == FULL_LAYERS, "struc2vec", f"{n} nodes", f"surroundings of {FEW_LAYERS} steps, not {FULL_LAYERS}"
    )
    return Embedded(struc2vec(adjacency, layers=layers), False, how)


def _how(exact: bool, name: str, size: str, instead: str) -> str:
    if exact:
        return name
    from gcnsl.graph import GraphWarning

    warnings.warn(f"{size} are too many for {name} in full: it uses {instead}", GraphWarning, stacklevel=4)
    return f"{name} with {instead}"
