"""The spectral features that GCN-SL reads, and how they grow with the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.sparse import slice_rows
from gcnsl.spectral import SpectralFeatures


@dataclass(frozen=True)
class SpectralColumns:
    """The spectral features F of the nodes (n × c), and the transformer that computes those of new nodes."""

    values: Tensor
    transformer: SpectralFeatures

    def grown(self, graph: Data) -> SpectralColumns:
        """F of the known nodes, unchanged, followed by F of the new nodes."""
        known, n = len(self.values), graph.num_nodes
        if n == known:
            return self
        return replace(self, values=torch.cat([self.values, self.transformer.transform(slice_rows(graph.x, known, n))]))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The state of the transformer, and F."""
        plain, tensors = self.transformer.state()
        return plain, {"values": self.values, **tensors}
