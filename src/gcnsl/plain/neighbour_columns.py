"""The columns that logistic regression and boosted trees read: a node's features, its neighbours', and its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from gcnsl.nn.config import Direction, Folder, Precomputed
from gcnsl.nn.graph_model import GraphModel
from gcnsl.nn.preprocessing import graph_adjacency, oriented_edges
from gcnsl.plain.plain_config import NeighbourColumnsConfig
from gcnsl.sparse import Matrix, fastest_form
from gcnsl.structure import StructuralFeatures
from gcnsl.structure.structural_features import FEATURE_NAMES

VIEWS: tuple[Direction, ...] = ("undirected", "out", "in")
PLACE_COLUMNS = len(FEATURE_NAMES) + 2
"""Degrees and eigenvectors, out-degree and in-degree."""
ABSENT = -30.0
"""Logit of a class without a training node; those of the others have mean 0."""
Block = TypeVar("Block")


@dataclass(frozen=True)
class Place:
    """Degrees and a spectral embedding of the nodes (n × 34), and how those of new nodes are computed.

    A model that needs fewer features keeps the directions to which it reduces them with it, as ``basis`` (d × k).
    """

    structure: StructuralFeatures
    values: Tensor
    basis: Tensor | None = None

    @classmethod
    def fit(cls, graph: Data) -> Place:
        """The places of a graph's nodes."""
        structure = StructuralFeatures.fit(graph.edge_index, graph.num_nodes)
        return cls(structure, structure.of(graph.edge_index, graph.num_nodes))

    def grown(self, graph: Data) -> Place:
        """Those of the known nodes, unchanged, followed by those of the new nodes."""
        return replace(self, values=self.structure.of(graph.edge_index, graph.num_nodes))

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The state of the structural features, and the basis."""
        return {}, self.structure.state() | ({} if self.basis is None else {"basis": self.basis})


class NeighbourColumns(GraphModel):
    """A model that reads these columns, see :class:`gcnsl.plain.plain_config.NeighbourColumnsConfig`."""

    @classmethod
    def precompute(cls, config: Any, graph: Data, *, seed: int, root: Folder = None) -> Precomputed | None:
        """The places of the nodes in the graph."""
        return Place.fit(graph)

    @classmethod
    def from_state(
        cls,
        config: NeighbourColumnsConfig,
        plain: dict[str, Any],
        tensors: dict[str, Tensor],
        graph: Data,
        *,
        seed: int,
    ) -> Precomputed | None:
        """The same from what was saved."""
        structure = StructuralFeatures.from_state(tensors)
        return Place(structure, structure.of(graph.edge_index, graph.num_nodes), tensors.get("basis"))

    @classmethod
    def inputs(
        cls, config: NeighbourColumnsConfig, graph: Data, *, precomputed: Precomputed | None, seed: int
    ) -> tuple[Matrix, ...]:
        """X, the places of the nodes (n × 36), and Â in each view: one, or three if edges have directions."""
        assert isinstance(precomputed, Place)
        views = VIEWS if config.direction == "both" and "arc_index" in graph else VIEWS[:1]
        arcs = oriented_edges(graph, "out")[0] if len(views) > 1 else graph.edge_index
        degrees = [degree(end, graph.num_nodes).log1p()[:, None] for end in arcs]
        place = torch.cat([precomputed.values, *degrees], dim=1)
        means = (graph_adjacency(graph, self_loops=False, norm="row", direction=view) for view in views)
        return fastest_form(graph.x), place, *means


def neighbour_blocks(x: Block, views: Sequence[Any], hops: int) -> Iterator[Block]:
    """X, and then ÂX, Â²X, ... in each view."""
    yield x
    for adjacency in views:
        block = x
        for _ in range(hops):
            block = adjacency @ block
            yield block
