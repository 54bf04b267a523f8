"""Where Geom-GCN's structural neighbourhoods come from: files of the literature, the user's cache, or an embedding."""

import os

from torch_geometric.data import Data

from gcnsl.nn import GeomGCNConfig
from gcnsl.structure import StructuralNeighbourhood, structural_neighbourhood


def find_neighbourhood(
    config: GeomGCNConfig, graph: Data, *, seed: int, root: str | os.PathLike[str] | None
) -> StructuralNeighbourhood:
    """The neighbourhoods that a configuration asks for; published ones only of a graph of the literature.

    Args:
        config: Says which embedding, and whether it is computed or published.
        graph: A checked graph.
        seed: Not used: the same graph always gets the same embedding.
        root: A folder to look for published files in first.
    """
    return structural_neighbourhood(
        graph.edge_index,
        graph.num_nodes,
        embedding=config.embedding,
        source=config.source,
        benchmark=graph.get("benchmark"),
        root=root,
    )
