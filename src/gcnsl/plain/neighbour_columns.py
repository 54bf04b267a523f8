r"""The columns of the plain methods: a node's features, its neighbours' features and known labels, and its place.

- X; with :math:`\hat A = D^{-1} A` without loops, the means :math:`\hat A X, \hat A^2 X, \dots` over neighbours; in a
  directed graph, means along out-edges and in-edges, too.
- The maximum, minimum and standard deviation over neighbours (:func:`extremes`).
- The place in the graph: log degree, its mean over neighbours, log PageRank, and singular vectors of the normalised
  adjacency (:class:`Place`).
- The shares of known labels among neighbours, in each direction, by kind of edges where there are several, and over two
  steps without the way back (:func:`label_columns`). Known labels are those of the fold's training nodes. A node's own
  label never enters its columns, but for the frequencies of the classes, which are the same for all nodes; so they mean
  the same for a training node and for any other.

Logistic regression reads X, its means and the place; boosted trees read all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from gcnsl.nn.config import Direction, Folder, Precomputed
from gcnsl.nn.graph_model import GraphModel
from gcnsl.nn.preprocessing import by_relation, graph_adjacency, links_to_known, oriented_edges, relation_count
from gcnsl.plain.plain_config import NeighbourColumnsConfig
from gcnsl.sparse import Matrix, SparseMatrix, adjacency_matrix, fastest_form
from gcnsl.spectral.structural_features import FEATURE_NAMES, StructuralFeatures

VIEWS: tuple[Direction, ...] = ("undirected", "out", "in")
PLACE_COLUMNS = len(FEATURE_NAMES) + 2
"""Degrees and eigenvectors, out-degree and in-degree."""
ABSENT = -30.0
"""Logit of a class without a training node; those of the others have mean 0."""
LARGEST_BLOCK = 1 << 24
"""At most so many values of neighbours are compared at a time."""
PRIOR_WEIGHT = 2.0
"""Shares of labels are shrunk to the classes' frequencies by so many neighbours."""
DAMPING, PAGERANK_STEPS = 0.85, 50
Block = TypeVar("Block")

OWN, NEAR, FAR = "{feature}", "{feature} of neighbours", "{feature} further away"
SELF_KNOWN, NEAR_KNOWN, FAR_KNOWN = "its own known class", "neighbours known as {label}", "{label} two steps away"
KIND_KNOWN = "share of {kind} neighbours known as {label}"
KIND_COUNTED = "number of {kind} neighbours with a known class"
COUNTED, FAR_COUNTED = "number of neighbours with a known class", "number of nodes of known class two steps away"
VOTER, TWIN = "class of its neighbour {node}", "class of {node}, linked most alike"
DEGREE, DEGREES, POSITION = (
    "its number of neighbours",
    "its neighbours' numbers of neighbours",
    "its place in the graph",
)


class Source(NamedTuple):
    """What a prediction can rest on: one of the texts above, and the number of the feature, class or node in it.

    ``kind`` is the number of the relation of edges that it is about, if it is about one.
    """

    text: str
    number: int | None = None
    kind: int | None = None


STRUCTURE_SOURCES = [Source(text) for text in (DEGREE, DEGREES, *[POSITION] * (len(FEATURE_NAMES) - 2))]
"""Those of the structural features, in order."""
PLACE_SOURCES = [*STRUCTURE_SOURCES, Source(DEGREE), Source(DEGREE)]
Contributions = dict[Source, float]
"""What adds to the log-odds of a class against another at a node."""


def summed(sources: Iterable[Source], values: Iterable[float]) -> Contributions:
    """The sum of the values of each source, without those that are 0."""
    total = dict[Source, float]()
    for source, value in zip(sources, values, strict=True):
        total[source] = total.get(source, 0.0) + float(value)
    return {source: value for source, value in total.items() if value}


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
    def from_state(cls, config: Any, plain: Any, tensors: dict[str, Tensor], graph: Data) -> Precomputed | None:
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


def sources_of(text: str, count: int, kind: int | None = None) -> list[Source]:
    """The sources of a block of columns, one for each feature or class."""
    return [Source(text, number, kind) for number in range(count)]


def neighbour_sources(features: int, views: int, hops: int) -> list[Source]:
    """The sources of :func:`neighbour_blocks`."""
    once, further = sources_of(NEAR, features), sources_of(FAR, features)
    return [*sources_of(OWN, features), *(once + further * (hops - 1) if hops else []) * views]


def all_columns(x: Any, place: Any, views: Sequence[Any], graph: Data, hops: int) -> Tensor:
    """All columns but those of known labels (N × m), from the inputs of a model with a dense X (N × d)."""
    around: Iterable[Any] = extremes(x.numpy(), graph.edge_index) if hops and x.shape[1] else []
    further = [log_pagerank(graph.edge_index, graph.num_nodes), *around]
    return torch.cat([place, *neighbour_blocks(x, views, hops), *map(torch.from_numpy, further)], dim=1)


def all_sources(columns: int, views: int, hops: int, classes: int, relations: int = 1) -> list[Source]:
    """The sources of :func:`all_columns`, and of :func:`label_columns` for so many classes, or none, and relations."""
    features = (columns - len(PLACE_SOURCES) - 1) // (1 + views * hops + 3 * (hops > 0))
    sources = [*PLACE_SOURCES, *neighbour_sources(features, views, hops), Source(POSITION)]
    sources += 3 * sources_of(NEAR, features) if hops else []
    if not classes:
        return sources
    sources += [*sources_of(NEAR_KNOWN, classes), Source(COUNTED)] * views
    for kind in range(relations if relations > 1 else 0):
        sources += [*sources_of(KIND_KNOWN, classes, kind), Source(KIND_COUNTED, None, kind)] * (views // 2 + 1)
    return [*sources, *sources_of(FAR_KNOWN, classes), Source(FAR_COUNTED)]


def extremes(x: NDArray[np.float32], edge_index: Tensor) -> NDArray[np.float32]:
    """The maximum, minimum and standard deviation of each column over a node's neighbours (3 × n × d), or NaN."""
    links = adjacency_matrix(edge_index, len(x), self_loops=False)
    linked, found = np.flatnonzero(np.diff(links.indptr)), np.full((3, *x.shape), np.nan, np.float32)
    start, count = links.indptr[linked], np.diff(links.indptr)[linked][:, None]
    width = max(1, LARGEST_BLOCK // max(1, links.nnz))
    for left in range(0, x.shape[1] if len(linked) else 0, width):
        part = slice(left, left + width)
        seen = x[:, part][links.indices]
        found[0, linked, part] = np.maximum.reduceat(seen, start)
        found[1, linked, part] = np.minimum.reduceat(seen, start)
        mean = np.add.reduceat(seen, start, dtype=np.float64) / count
        square = np.add.reduceat(seen.astype(np.float64) ** 2, start) / count
        found[2, linked, part] = np.sqrt(np.maximum(square - mean**2, 0))
    return found


def log_pagerank(edge_index: Tensor, num_nodes: int) -> NDArray[np.float32]:
    """The logarithm of the nodes' PageRank in units of the mean over nodes with neighbours (n × 1).

    A node without neighbours, from which no walk goes on, has no influence on others.
    """
    links = adjacency_matrix(edge_index, num_nodes, self_loops=False)
    step = sp.csr_array(links.T.multiply(1 / np.maximum(np.diff(links.indptr), 1)))
    rank = np.ones(num_nodes)
    for _ in range(PAGERANK_STEPS):
        rank = DAMPING * (step @ rank) + (1 - DAMPING)
    return np.log(rank).astype(np.float32)[:, None]


def known_links(graph: Data, direction: Direction) -> SparseMatrix:
    """A without loops and weights, of which the columns are the nodes of the training graph (n × known)."""
    links = links_to_known(graph, direction)
    return links.with_values(torch.ones_like(links.values))


def known_links_by_kind(graph: Data, views: Sequence[Direction]) -> list[SparseMatrix]:
    """The same for each of several relations, in both directions if there are more views than one."""
    parts = by_relation(graph) if relation_count(graph) > 1 else []
    return [known_links(part, view) for part in parts for view in views[1:] or views]


def label_columns(labels: Tensor, *links: SparseMatrix) -> Tensor:
    r"""The shares of known labels among neighbours, shrunk to the prior π, and their number (N × (V + 1) (C + 1)).

    With the labels Y of the training nodes (a 1 for the class of each, zeros for other nodes) and the counts
    :math:`S = L Y` of a view L (N × n), a node has :math:`(S_{ic} + 2 \pi_c) / (\sum_b S_{ib} + 2)` and
    :math:`\log(1 + \sum_b S_{ib})`. The last columns are those of two steps in the first view, without the way back:
    :math:`S = L (L Y) - D Y`, since each neighbour of a node would count the node's own label.

    Args:
        labels: Y (n × C).
        links: Every L, nodes that are new after the n others; the first one is symmetric among the n.
    """
    prior = labels.sum(dim=0) + 1
    prior = prior / prior.sum()
    counts = [view @ labels for view in links]
    n, first = len(labels), links[0]
    twice = first @ counts[0][:n].contiguous()
    twice[:n] -= (first @ torch.ones_like(labels[:, :1]))[:n] * labels
    columns = []
    for count in (*counts, twice.clamp(min=0)):
        total = count.sum(dim=1, keepdim=True)
        columns += [(count + PRIOR_WEIGHT * prior) / (total + PRIOR_WEIGHT), total.log1p()]
    return torch.cat(columns, dim=1)
