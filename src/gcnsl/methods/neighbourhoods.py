"""The structural neighbourhoods that Geom-GCN needs, read from files or computed."""

import os

from torch_geometric.data import Data

from gcnsl.nn import GeomGCNConfig
from gcnsl.structure import StructuralNeighbourhood, structural_neighbourhood


def find_neighbourhood(
    config: GeomGCNConfig, graph: Data, *, seed: int, root: str | os.PathLike[str] | None
) -> StructuralNeighbourhood:
    """The neighbourhoods for a configuration and a graph.

    Args:
        config: Holds the embedding, and whether it is computed or published.
        graph: A checked graph. Only benchmarks of the literature have published neighbourhoods.
        seed: Not used, because the same graph always gets the same embedding.
        root: A folder to search for published files first.
    """
    return structural_neighbourhood(
        graph.edge_index,
        graph.num_nodes,
        embedding=config.embedding,
        source=config.source,
        benchmark=graph.get("benchmark"),
        root=root,
    )
