"""What the edges alone tell: features for graphs that have none, and latent neighbourhoods for Geom-GCN."""

from gcnsl.structure.neighbourhood import (
    SPACES_AND_RELATIONS,
    Embedding,
    Source,
    StructuralNeighbourhood,
    structural_neighbourhood,
)
from gcnsl.structure.structural_features import StructuralFeatures

__all__ = [
    "SPACES_AND_RELATIONS",
    "Embedding",
    "Source",
    "StructuralFeatures",
    "StructuralNeighbourhood",
    "structural_neighbourhood",
]
