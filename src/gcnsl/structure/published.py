"""Geom-GCN's own structural neighbourhoods, as its authors published them for seven graphs of the paper and Actor."""

import io

import numpy as np
import pandas as pd
import scipy.sparse as sp

from gcnsl.errors import InputError
from gcnsl.structure.neighbourhood import RELATIONS, StructuralNeighbourhood, as_tensors

FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}


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
    rows = pd.read_csv(io.StringIO(text), skiprows=1, names=["node", "neighbour", "space", "relation"])

    pairs = rows[["node", "neighbour"]].to_numpy(dtype=np.int64).T
    latent = (rows["space"] == "latent_space").to_numpy()
    given, own = (_keys(each, adjacency.shape[0]) for each in (pairs[:, ~latent], np.stack(adjacency.nonzero())))
    if not np.array_equal(given, own):
        raise InputError(
            f"source('published'): the graph is not the one of {file}, whose edges are others; use 'computed'"
        )
    division = (RELATIONS * latent + rows["relation"].to_numpy()).astype(np.uint8)
    return as_tensors(pairs, division, f"{embedding}, published ({file})")


def _keys(
    pairs: np.ndarray[tuple[int, ...], np.dtype[np.int64]], n: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Pairs of nodes as numbers, sorted."""
    return np.sort(pairs[0].astype(np.int64) * n + pairs[1])
