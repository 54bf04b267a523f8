"""Where a structural neighbourhood comes from: published, computed before, or computed now."""

from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.structure import cache
from gcnsl.structure.embeddings import Embedding, embed
from gcnsl.structure.neighbourhood import StructuralNeighbourhood, as_tensors, neighbourhood

Source = Literal["computed", "published"]


def structural_neighbourhood(
    data: Data, *, embedding: Embedding = "isomap", source: Source = "computed"
) -> StructuralNeighbourhood:
    """The neighbours of every node in the graph and in a latent space, each with its direction there.

    Args:
        data: A checked graph; its loops are left out.
        embedding: What the latent space is: ``"isomap"``, ``"poincare"`` or ``"struc2vec"``; the same graph always gets
            the same one.
        source: ``"computed"``: by this package, and kept in the user's cache. ``"published"``: the files of Geom-GCN's
            authors, for the literature's graphs.

    Returns:
        The neighbourhood; its ``how`` belongs to every result that rests on it.
    """
    for name, value, choices in (("embedding", embedding, get_args(Embedding)), ("source", source, get_args(Source))):
        if value not in choices:
            raise InputError(f"{name}({value!r}) must be one of {', '.join(choices)}")
    adjacency = _simple(data)
    if source == "published":
        from gcnsl.structure.published import read_published

        return read_published(str(data.get("name")), adjacency, embedding)
    path = cache.path_of(adjacency, embedding)
    found = cache.read(path)
    if found is None:
        found = _compute(adjacency, embedding)
        cache.write(path, found)
    return found


def _compute(adjacency: sp.csr_array, embedding: Embedding) -> StructuralNeighbourhood:
    embedded = embed(adjacency, embedding)
    pairs, division = neighbourhood(adjacency, embedded.positions, hyperbolic=embedded.hyperbolic)
    return as_tensors(pairs, division, f"{embedded.how}, computed")


def _simple(data: Data) -> sp.csr_array:
    """The adjacency matrix (n × n) without loops, rows sorted."""
    source, target = data.edge_index.numpy()
    other = source != target
    ones = np.ones(int(other.sum()), dtype=np.float32)
    adjacency = sp.csr_array((ones, (source[other], target[other])), shape=(data.num_nodes, data.num_nodes))
    adjacency.sort_indices()
    return adjacency
