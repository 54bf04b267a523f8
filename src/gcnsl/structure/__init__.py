"""Structural neighbourhoods: which nodes are alike by their place in the graph, for Geom-GCN."""

from gcnsl.structure.embeddings import Embedding
from gcnsl.structure.neighbourhood import SPACES_AND_RELATIONS, StructuralNeighbourhood
from gcnsl.structure.source import Source, structural_neighbourhood

__all__ = [
    "SPACES_AND_RELATIONS",
    "Embedding",
    "Source",
    "StructuralNeighbourhood",
    "structural_neighbourhood",
]
