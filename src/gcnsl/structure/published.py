"""The structural neighbourhoods that Geom-GCN's authors published, for seven graphs of the paper and Actor.

A line ``u,v`` is an edge from u to v: node v aggregates its neighbour u. The direction matters for the Poincaré files,
whose latent neighbourhoods are not symmetric (accuracy on Texas over ten splits: 66 %; with edges reversed: 59 %).

Two of the 24 files, those of Isomap for Citeseer and Pubmed, do not hold directions in the plane. If v lies to the
upper right of u, then u must lie to the lower left of v. The other 22 files satisfy this for every edge; in these two,
most edges have the same relation in both directions. Among the Citeseer edges with relation 2 in both directions,
99.3 % join nodes of the same class; among those with relation 3, 2.9 % do (Pubmed: 99.7 % and 5.1 %). So these files
reveal the classes of test nodes to the model.
"""

import io
import os
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.graph import GraphWarning
from gcnsl.structure.neighbourhood import RELATIONS, StructuralNeighbourhood, as_tensors

FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
TELLING = {("citeseer", "isomap"), ("pubmed", "isomap")}
"""Files whose relations reveal classes."""


def read_published(
    name: str, adjacency: sp.csr_array, embedding: str, *, root: str | os.PathLike[str] | None = None
) -> StructuralNeighbourhood:
    """The published neighbourhood of a graph of the literature, whose edges (n × n, no loops) must be those given."""
    from gcnsl.datasets.benchmarks import BENCHMARKS
    from gcnsl.datasets.dataset_files import checksums, fetch

    stem = BENCHMARKS[name].split_stem if name in BENCHMARKS else name
    file = f"outf_nodes_space_relation_{stem}_{FILE_NAMES[embedding]}.txt"
    path = f"geom-gcn/structural_neighborhood/{file}"
    if path not in checksums():
        raise InputError(f"source('published'): there is no published neighbourhood of {name!r}; use 'computed'")
    text = fetch([path], root)[path].decode().replace("\t", ",")
    rows = pd.read_csv(io.StringIO(text), skiprows=1, names=["neighbour", "node", "space", "relation"])

    pairs = rows[["node", "neighbour"]].to_numpy(dtype=np.int64).T
    latent = (rows["space"] == "latent_space").to_numpy()
    given, own = pairs[:, ~latent], np.stack(adjacency.nonzero())
    if not np.array_equal(given[:, np.lexsort(given[::-1])], own):
        raise InputError(f"source('published'): the edges of {file} are not those of the graph; use 'computed'")
    division = (RELATIONS * latent + rows["relation"].to_numpy()).astype(np.uint8)
    how = f"{embedding}, published ({file})"
    if (name, embedding) in TELLING:
        how += ", whose directions reveal classes"
        message = f"the directions in {file} reveal the classes of the nodes, including test nodes: accuracies with it "
        message += "are too high; use source='computed' for an honest result"
        warnings.warn(message, GraphWarning, stacklevel=3)
    return as_tensors(pairs, division, how)
