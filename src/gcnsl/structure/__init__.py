"""Structural neighbourhoods for Geom-GCN: which nodes have similar positions in a latent space of the graph."""

from gcnsl.structure.neighbourhood import SPACES_AND_RELATIONS, StructuralNeighbourhood
from gcnsl.structure.source import Embedding, Source, structural_neighbourhood

__all__ = ["SPACES_AND_RELATIONS", "Embedding", "Source", "StructuralNeighbourhood", "structural_neighbourhood"]
