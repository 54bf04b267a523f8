"""Geom-GCN's own structural neighbourhoods, as its authors published them for seven graphs of the paper and Actor.

A line ``u,v`` is an edge from u to v: u is the neighbour and v the node that takes it in. This matters for Poincaré's
files, whose latent neighbourhoods are not symmetric (Texas, ten splits: 66 %, the other way round 59 %).

Two of the 24 files, Isomap's of Citeseer and of Pubmed, hold something else than directions in the plane. Where v lies
to the upper right of u, u lies to the lower left of v, and the other 22 files keep to this for every edge. These two do
not: most edges have the same relation both ways. Of the Citeseer edges with relation 2 both ways 99.3 % join nodes of
one class, of those with relation 3 both ways 2.9 % (Pubmed: 99.7 % and 5.1 %). So the files tell the model the classes
of test nodes.
"""

import io
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.graph import GraphWarning
from gcnsl.structure.neighbourhood import RELATIONS, Ints, StructuralNeighbourhood, as_tensors

FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
TELLING = {("citeseer", "isomap"), ("pubmed", "isomap")}
"""Files whose relations tell classes."""


def read_published(name: str, adjacency: sp.csr_array, embedding: str) -> StructuralNeighbourhood:
    """The published neighbourhood of a graph known by name, whose edges must be those of ``adjacency`` (no loops)."""
    from gcnsl.datasets.benchmarks import BENCHMARKS
    from gcnsl.datasets.files import checksums, fetch

    stem = BENCHMARKS[name].split_stem if name in BENCHMARKS else name
    file = f"outf_nodes_space_relation_{stem}_{FILE_NAMES[embedding]}.txt"
    path = f"geom-gcn/structural_neighborhood/{file}"
    if path not in checksums():
        raise InputError(f"source('published'): there is no published neighbourhood of {name!r}; use 'computed'")
    text = fetch([path])[path].decode().replace("\t", ",")
    rows = pd.read_csv(io.StringIO(text), skiprows=1, names=["neighbour", "node", "space", "relation"])

    pairs = rows[["node", "neighbour"]].to_numpy(dtype=np.int64).T
    latent = (rows["space"] == "latent_space").to_numpy()
    given, own = (_keys(each, adjacency.shape[0]) for each in (pairs[:, ~latent], np.stack(adjacency.nonzero())))
    if not np.array_equal(given, own):
        raise InputError(
            f"source('published'): the graph is not the one of {file}, whose edges are others; use 'computed'"
        )
    division = (RELATIONS * latent + rows["relation"].to_numpy()).astype(np.uint8)
    how = f"{embedding}, published ({file})"
    if (name, embedding) in TELLING:
        how += ", whose directions tell classes"
        warnings.warn(
            f"the directions in {file} follow the classes of the nodes, those of test nodes included: "
            "accuracies with it are too high; use source='computed' for an honest one",
            GraphWarning,
            stacklevel=4,
        )
    return as_tensors(pairs, division, how)


def _keys(pairs: Ints, n: int) -> Ints:
    """Pairs of nodes as numbers, sorted."""
    return np.sort(pairs[0].astype(np.int64) * n + pairs[1])
