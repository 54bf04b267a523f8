"""Geom-GCN's structural neighbourhoods: neighbours in the graph and in a latent space, computed once or as published.

The neighbourhoods that Geom-GCN's authors published are those of seven graphs of the paper and of Actor. A line ``u,v``
is an edge from u to v: node v aggregates its neighbour u. The direction matters for the Poincaré files, whose latent
neighbourhoods are not symmetric (accuracy on Texas over ten splits: 66 %; with edges reversed: 59 %).

Two of the 24 files, those of Isomap for Citeseer and Pubmed, do not hold directions in the plane. If v lies to the
upper right of u, then u must lie to the lower left of v. The other 22 files satisfy this for every edge; in these two,
most edges have the same relation in both directions. Among the Citeseer edges with relation 2 in both directions,
99.3 % join nodes of the same class; among those with relation 3, 2.9 % do (Pubmed: 99.7 % and 5.1 %). So these files
reveal the classes of test nodes to the model.
"""

import contextlib
import hashlib
import io
import os
import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree
from torch import Tensor

from gcnsl.datasets import benchmarks
from gcnsl.datasets.latent_spaces import Floats, Ints, isomap, poincare, struc2vec
from gcnsl.errors import ArgumentError, InputError
from gcnsl.files import BAD_ZIP, atomic_write
from gcnsl.graph import GraphWarning
from gcnsl.sparse import adjacency_matrix

Found = tuple[Ints, NDArray[np.uint8], str]
"""Pairs (2 × E), their divisions (E), and how they were found."""
RELATIONS = 4
SPACES_AND_RELATIONS = 2 * RELATIONS
CACHE_VERSION = 2
"""Increase it when an embedding changes, so that older files are ignored."""
EXACT_NODES, LANDMARKS = 6_000, 500
"""Isomap stores the distances of all pairs several times: 0.3 GB each for 6,000 nodes."""
EXACT_EDGES, DRAWN_EDGES = 200_000, 100_000
"""The Poincaré embedding processes about 20,000 directed edges per second, 50 times each."""
FULL_NODES, FULL_LAYERS, FEW_LAYERS = 30_000, 5, 2
"""struc2vec visits all nodes within this many steps of every node, which are soon most of the graph."""
FILE_NAMES = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}
TELLING = {("citeseer", "isomap"), ("pubmed", "isomap")}
"""Files whose relations reveal classes."""


@dataclass(frozen=True)
class StructuralNeighbourhood:
    """The neighbours of every node, each in one of 8 divisions.

    Attributes:
        edge_index: Pairs of a node and a neighbour (2 × E, int64), without loops; neighbours in both spaces twice.
        division: Division of each pair (E, uint8): 0-3 for neighbours in the graph, 4-7 for neighbours in the latent
            space, plus 2·[the neighbour lies to the right] + [it lies above].
        how: How the neighbourhood was obtained, in one line.
    """

    edge_index: Tensor
    division: Tensor
    how: str

    def grown(self, graph: Any) -> NoReturn:
        """Raise an InputError: the embedding can't be extended to a changed graph."""
        raise InputError(
            "can't take new nodes or other edges: its latent space holds the nodes it was trained with; "
            "train it again on the grown graph, or use another method"
        )

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors by name."""
        return {"how": self.how}, {"edge_index": self.edge_index, "division": self.division}


def structural_neighbourhood(
    edge_index: Tensor,
    num_nodes: int,
    *,
    embedding: str = "isomap",
    source: str = "computed",
    benchmark: str | None = None,
    root: str | os.PathLike[str] | None = None,
) -> StructuralNeighbourhood:
    """The neighbours of every node in an undirected graph (2 × E) and in a latent space (a key of FILE_NAMES).

    They are computed and stored in the user's cache folder, or those that Geom-GCN's authors published of a benchmark,
    whose files are searched for in the folder ``root`` first. The same graph always gets the same embedding.
    """
    adjacency, published = adjacency_matrix(edge_index, num_nodes, self_loops=False), source == "published"
    found = _published(benchmark, adjacency, embedding, root) if published else _computed_once(adjacency, embedding)
    pairs, division, how = found
    return StructuralNeighbourhood(torch.from_numpy(pairs.astype(np.int64)), torch.from_numpy(division), how)


def _published(name: str | None, adjacency: sp.csr_array, embedding: str, root: Any) -> Found:
    """The published pairs of a graph of the literature, whose edges (n × n, no loops) must be those given."""
    stem = benchmarks.BENCHMARKS[name].split_stem if name in benchmarks.BENCHMARKS else name
    file = f"outf_nodes_space_relation_{stem}_{FILE_NAMES[embedding]}.txt"
    path = f"geom-gcn/structural_neighborhood/{file}"
    if path not in benchmarks.checksums():
        rule = f"is not possible: there is no published neighbourhood of {name or 'this graph'}; use 'computed'"
        raise ArgumentError("source", "published", rule)
    text = benchmarks.fetch([path], root)[path].decode().replace("\t", ",")
    rows = pd.read_csv(io.StringIO(text), skiprows=1, names=["neighbour", "node", "space", "relation"])
    pairs = rows[["node", "neighbour"]].to_numpy(dtype=np.int64).T
    latent = (rows["space"] == "latent_space").to_numpy()
    given, own = pairs[:, ~latent], np.stack(adjacency.nonzero())
    if not np.array_equal(given[:, np.lexsort(given[::-1])], own):
        raise InputError(f"source('published'): the edges of {file} are not those of the graph; use 'computed'")
    how = f"{embedding}, published ({file})"
    if (name, embedding) in TELLING:
        how += ", whose directions reveal classes"
        message = f"the directions in {file} reveal the classes of the nodes, including test nodes: accuracies with it "
        warnings.warn(message + "are too high; use source='computed' for an honest result", GraphWarning, stacklevel=3)
    return pairs, (RELATIONS * latent + rows["relation"].to_numpy()).astype(np.uint8), how


def _computed_once(adjacency: sp.csr_array, embedding: str) -> Found:
    """The pairs of exactly this graph, from the cache or computed and written there."""
    digest = hashlib.sha256(f"{CACHE_VERSION} {embedding} {adjacency.shape[0]}".encode())
    for part in (adjacency.indptr, adjacency.indices):
        digest.update(part.astype("<i8").tobytes())
    file = benchmarks.cache_folder() / "structure" / f"{embedding}-{digest.hexdigest()[:32]}.npz"
    # A missing or damaged file is written again. If that fails, the neighbourhood is computed again next time.
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, *BAD_ZIP):
        stored = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False)
        return stored["pairs"], stored["division"], str(stored["how"])
    positions, how = embed(adjacency, embedding)
    pairs, division = neighbourhood(adjacency, positions, hyperbolic=embedding == "poincare")
    content, how = io.BytesIO(), f"{how}, computed"
    np.savez_compressed(content, pairs=pairs.astype(np.int32), division=division, how=np.array(how))
    with contextlib.suppress(OSError):
        atomic_write(file, content.getvalue())
    return pairs, division, how


def embed(adjacency: sp.csr_array, embedding: str) -> tuple[Floats, str]:
    """Positions of the nodes (n × 2), and how they were computed: exactly or, for large graphs, approximately."""
    n, edges = adjacency.shape[0], adjacency.nnz
    if embedding == "isomap":
        exact, few = n <= EXACT_NODES, f"{LANDMARKS} of them as landmarks"
        positions = isomap(adjacency, landmarks=None if exact else LANDMARKS)
    elif embedding == "poincare":
        exact, few = edges <= EXACT_EDGES, f"{DRAWN_EDGES} of them, drawn at random"
        positions = poincare(adjacency, edges=None if exact else DRAWN_EDGES)
    else:
        exact, few = n <= FULL_NODES, f"distances up to {FEW_LAYERS}, not {FULL_LAYERS}"
        positions = struc2vec(adjacency, layers=FULL_LAYERS if exact else FEW_LAYERS)
    if exact:
        return positions, embedding
    size = f"{edges} directed edges" if embedding == "poincare" else f"{n} nodes"
    message = f"{size} are too many for the exact {embedding} embedding: using {few}"
    warnings.warn(message, GraphWarning, stacklevel=4)
    return positions, f"{embedding} with {few}"


def neighbourhood(
    adjacency: sp.csr_array, positions: Floats, *, hyperbolic: bool = False
) -> tuple[Ints, NDArray[np.uint8]]:
    """Pairs (2 × E) and their divisions (E), see :class:`StructuralNeighbourhood`.

    Two nodes are neighbours in the latent space if their distance is at most ρ, the largest radius that gives at most
    as many neighbours as the graph has. Positions (n × 2) are in the plane or, if ``hyperbolic``, in the unit disc with
    hyperbolic distances (Poincaré's model). A node with NaN has no neighbours in the latent space.
    """
    graph = np.stack(adjacency.nonzero()).astype(np.int64)
    latent = _closest_pairs(positions, graph.shape[1], hyperbolic=hyperbolic)
    pairs = np.concatenate([graph, latent], axis=1)
    space = np.repeat([0, 1], [graph.shape[1], latent.shape[1]])
    right, above = (positions[pairs[1]] > positions[pairs[0]]).T
    return pairs, (RELATIONS * space + 2 * right + above).astype(np.uint8)


def _closest_pairs(positions: Floats, count: int, *, hyperbolic: bool) -> Ints:
    """The ordered pairs of nodes at most ρ apart (2 × E)."""
    nodes = np.flatnonzero(~np.isnan(positions).any(axis=1))
    points = positions[nodes]
    if not len(nodes):
        return np.empty((2, 0), dtype=np.int64)
    tree = KDTree(points)
    places, crowd = np.unique(points, axis=0, return_counts=True)  # in a star, nearly all nodes are at one place
    place_tree = KDTree(places)

    def within(radius: float, **options: Any) -> Any:
        centres, reach = _disc(points, radius) if hyperbolic else (points, radius)
        return tree.query_ball_point(centres, reach, **options)

    def found(radius: float) -> int:
        if hyperbolic:
            return int(within(radius, return_length=True).sum()) - len(nodes)
        return int(place_tree.count_neighbors(place_tree, radius, weights=(crowd, crowd))) - len(nodes)

    low, high = 0.0, float(np.linalg.norm(np.ptp(points, axis=0))) + 1.0  # at least the distance of any two nodes
    if hyperbolic:
        high = 4 * float(np.arctanh(np.linalg.norm(points, axis=1).max())) + 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) <= count else (low, middle)
    if found(low) > count:  # more pairs than that coincide
        return np.empty((2, 0), dtype=np.int64)
    others = within(low, return_sorted=True)
    source = np.repeat(np.arange(len(nodes)), [len(near) for near in others])
    target = np.concatenate([np.asarray(near, dtype=np.int64) for near in others])
    apart = source != target
    return np.stack([nodes[source[apart]], nodes[target[apart]]])


def _disc(points: Floats, radius: float) -> tuple[Floats, NDArray[np.float64]]:
    """The Euclidean centre and radius of the hyperbolic disc of this radius around each point v.

    With t = tanh(radius / 2), the centre is (1 - t²) / (1 - t²|v|²) v and the radius t (1 - |v|²) / (1 - t²|v|²).
    """
    t = np.tanh(radius / 2)
    square = (points**2).sum(axis=1)
    shrink = 1 / (1 - t**2 * square)
    return ((1 - t**2) * shrink)[:, None] * points, t * (1 - square) * shrink
