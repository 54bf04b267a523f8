"""Where a structural neighbourhood comes from: published files, the cache, or a new computation."""

import os
from typing import Literal, get_args

from torch import Tensor

from gcnsl.checks import check_choice
from gcnsl.errors import ArgumentError
from gcnsl.sparse import adjacency_matrix
from gcnsl.structure import cache
from gcnsl.structure.embeddings import Embedding, embed
from gcnsl.structure.neighbourhood import StructuralNeighbourhood, as_tensors, neighbourhood

Source = Literal["computed", "published"]


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
        embedding: The latent space: ``"isomap"``, ``"poincare"`` or ``"struc2vec"``. The same graph always gets the
            same embedding.
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
    path = cache.path_of(adjacency, embedding)
    found = cache.read(path)
    if found is None:
        positions, how = embed(adjacency, embedding)
        pairs, division = neighbourhood(adjacency, positions, hyperbolic=embedding == "poincare")
        found = as_tensors(pairs, division, f"{how}, computed")
        cache.write(path, found)
    return found
