"""Where a structural neighbourhood comes from: published files, the cache, or a new computation."""

import contextlib
import hashlib
import io
import os
import warnings
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from gcnsl.checks import check_choice
from gcnsl.errors import ArgumentError
from gcnsl.files import BAD_ZIP, atomic_write
from gcnsl.sparse import adjacency_matrix
from gcnsl.structure.isomap import isomap
from gcnsl.structure.neighbourhood import Positions, StructuralNeighbourhood, as_tensors, neighbourhood
from gcnsl.structure.poincare import poincare

Embedding = Literal["isomap", "poincare", "struc2vec"]
Source = Literal["computed", "published"]

CACHE_VERSION = 2
"""Increase it when an embedding changes, so that older files are ignored."""

EXACT_NODES, LANDMARKS = 6_000, 500
"""Isomap stores the distances of all pairs several times: 0.3 GB each for 6,000 nodes."""

EXACT_EDGES, DRAWN_EDGES = 200_000, 100_000
"""The Poincaré embedding processes about 20,000 directed edges per second, 50 times each."""

FULL_NODES, FULL_LAYERS, FEW_LAYERS = 30_000, 5, 2
"""struc2vec visits all nodes within this many steps of every node, which are soon most of the graph."""


def structural_neighbourhood(
    edge_index: Tensor,
    num_nodes: int,
    *,
    embedding: Embedding = "isomap",
    source: Source = "computed",
    benchmark: str | None = None,
    root: str | os.PathLike[str] | None = None,
) -> StructuralNeighbourhood:
    """The neighbours of every node in the graph and in a latent space, each with its direction in that space.

    Args:
        edge_index: Edges of an undirected graph, each in both directions (2 × E). Loops are ignored.
        num_nodes: Number of nodes (n).
        embedding: The latent space. The same graph always gets the same embedding.
        source: ``"computed"``: computed by this package and stored in the user's cache folder. ``"published"``: read
            from the files of Geom-GCN's authors.
        benchmark: Name of the graph if it is one of the literature; needed for published neighbourhoods.
        root: A folder to search for published files first.

    Returns:
        The neighbourhood. Its ``how`` should be reported with every result that depends on it.
    """
    check_choice("embedding", embedding, get_args(Embedding))
    check_choice("source", source, get_args(Source))
    adjacency = adjacency_matrix(edge_index, num_nodes, self_loops=False)
    if source == "published":
        from gcnsl.structure.published import read_published

        if benchmark is None:
            rule = "is not possible: only graphs of the literature have published neighbourhoods; use 'computed'"
            raise ArgumentError("source", source, rule)
        return read_published(benchmark, adjacency, embedding, root=root)
    file = _cache_file(adjacency, embedding)
    # A missing or damaged file is written again. If that fails, the neighbourhood is computed again next time.
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, *BAD_ZIP):
        stored = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False)
        return as_tensors(stored["pairs"], stored["division"], str(stored["how"]))
    positions, how = embed(adjacency, embedding)
    pairs, division = neighbourhood(adjacency, positions, hyperbolic=embedding == "poincare")
    content, how = io.BytesIO(), f"{how}, computed"
    np.savez_compressed(content, pairs=pairs.astype(np.int32), division=division, how=np.array(how))
    with contextlib.suppress(OSError):
        atomic_write(file, content.getvalue())
    return as_tensors(pairs, division, how)


def _cache_file(adjacency: sp.csr_array, embedding: Embedding) -> Path:
    """The file for the neighbourhood of exactly this graph."""
    from gcnsl.datasets.dataset_files import cache_folder

    digest = hashlib.sha256(f"{CACHE_VERSION} {embedding} {adjacency.shape[0]}".encode())
    for part in (adjacency.indptr, adjacency.indices):
        digest.update(part.astype("<i8").tobytes())
    return cache_folder() / "structure" / f"{embedding}-{digest.hexdigest()[:32]}.npz"


def embed(adjacency: sp.csr_array, embedding: Embedding) -> tuple[Positions, str]:
    """Positions of the nodes (n × 2), and how they were computed: exactly or, for large graphs, approximately.

    The graph (n × n) is symmetric and without loops. A warning tells of an approximation.
    """
    n, edges = adjacency.shape[0], adjacency.nnz
    exact, size, instead = {
        "isomap": (n <= EXACT_NODES, f"{n} nodes", f"{LANDMARKS} of them as landmarks"),
        "poincare": (edges <= EXACT_EDGES, f"{edges} directed edges", f"{DRAWN_EDGES} of them, drawn at random"),
        "struc2vec": (n <= FULL_NODES, f"{n} nodes", f"distances up to {FEW_LAYERS}, not {FULL_LAYERS}"),
    }[embedding]
    how = embedding if exact else f"{embedding} with {instead}"
    if not exact:
        from gcnsl.graph import GraphWarning

        message = f"{size} are too many for the exact {embedding} embedding: using {instead}"
        warnings.warn(message, GraphWarning, stacklevel=3)
    if embedding == "isomap":
        return isomap(adjacency, landmarks=None if exact else LANDMARKS), how
    if embedding == "poincare":
        return poincare(adjacency, edges=None if exact else DRAWN_EDGES), how
    from gcnsl.structure.struc2vec import struc2vec  # imports numba, which takes a while

    return struc2vec(adjacency, layers=FULL_LAYERS if exact else FEW_LAYERS), how
