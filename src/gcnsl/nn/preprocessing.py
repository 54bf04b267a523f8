"""Preprocessing of a graph: normalised and shifted features, and the normalised adjacency matrix Â."""

from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from gcnsl.checks import check_choice, check_number
from gcnsl.nn.config import AdjacencyNorm, Direction, FeatureNorm
from gcnsl.sparse import SparseMatrix, csr_tensor, from_scipy, to_scipy, weighted_edges_sorted

MatrixNorm = Literal[AdjacencyNorm, "row-sums"]


def normalize_features(x: Tensor, norm: FeatureNorm = "none") -> Tensor:
    """Divide each row of X (n × d, dense or CSR) by its sum of magnitudes (``row``) or its length (``l2``).

    Zero rows stay zero.
    """
    if check_choice("norm", norm, get_args(FeatureNorm)) == "none":
        return x
    order = 1 if norm == "row" else 2
    if x.layout != torch.sparse_csr:
        return torch.nn.functional.normalize(x, p=order, dim=1)
    start, values = x.crow_indices(), x.values()
    row = torch.repeat_interleave(torch.arange(len(start) - 1, device=x.device), start.diff())
    size = values.new_zeros(len(start) - 1).index_add_(0, row, values.abs() ** order) ** (1 / order)
    return csr_tensor(start, x.col_indices(), values / size.clamp(min=1e-12)[row], x.shape)


def shift_features(x: Tensor, amount: float = 0.5, *, seed: int = 0) -> Tensor:
    """X[:, j] += amount, for one random feature j (X dense or CSR): the paper's "special data preprocessing".

    Afterwards no row of nonnegative features is zero, so that every x_i Q has a direction.
    """
    check_number("amount", amount, least=0)
    column = int(np.random.default_rng(seed).integers(x.shape[1]))
    if x.layout != torch.sparse_csr:
        shifted = x.clone()
        shifted[:, column] += amount
        return shifted
    n, before = x.shape[0], to_scipy(x)
    shift = sp.csr_array((np.full(n, amount), np.full(n, column), np.arange(n + 1)), shape=x.shape)
    return from_scipy(before + shift.astype(before.dtype))


def normalized_adjacency(
    edge_index: Tensor,
    num_nodes: int,
    *,
    weight: Tensor | None = None,
    self_loops: bool = True,
    norm: MatrixNorm = "symmetric",
    known: int | None = None,
) -> SparseMatrix:
    """Â = D^-1/2 A D^-1/2 (``symmetric``) or D^-1 A (``row``), where A has loops at all nodes or at none.

    ``edge_index`` (2 × E) holds the places of A's entries, each undirected edge in both directions, and ``weight``
    (E, positive) the entries, which are 1 without it, as for added loops. D is diagonal and holds the sums of A's rows,
    or 1 for a sum of 0. If A is not symmetric, the second D^-1/2 of ``symmetric`` has the sums of its columns; that of
    ``row-sums`` has those of its rows.

    With ``known``, the nodes after the first ``known`` ones are new and seen by nobody but themselves, so that the rows
    of the others do not change when they are added.
    """
    check_choice("norm", norm, get_args(MatrixNorm))
    entries = torch.ones_like(edge_index[0]) if weight is None else weight
    entries = entries.to(torch.get_default_dtype())
    edges, entries = weighted_edges_sorted(edge_index, entries, num_nodes, self_loops=self_loops)
    known = num_nodes if known is None else known
    seen = (edges[1] < known) | (edges[0] == edges[1])
    edges, entries = edges[:, seen], entries[seen]
    source, target = edges
    tiny = torch.finfo(entries.dtype).tiny  # so that inverses are finite
    among = source < known
    sums = scatter(entries, source, dim_size=num_nodes), scatter(entries[among], target[among], dim_size=num_nodes)
    rows, columns = (torch.where(total > 0, total.clamp(min=tiny), 1.0) for total in sums)
    columns[known:] = rows[known:]
    ends = rows if norm == "row-sums" else columns
    scale = rows[source] ** -1.0 if norm == "row" else rows[source] ** -0.5 * ends[target] ** -0.5
    return SparseMatrix.from_edges(edges, scale * entries, num_nodes)


def oriented_edges(graph: Data, direction: Direction) -> tuple[Tensor, Tensor | None]:
    """The pairs (i, j) of which node i sees node j (2 × E), and their :func:`relative_weights`.

    A graph without directions is undirected, whatever the direction.
    """
    check_choice("direction", direction, get_args(Direction))
    if direction == "undirected" or "arc_index" not in graph:
        return graph.edge_index, relative_weights(graph)
    arcs: Tensor = graph.arc_index
    return (arcs if direction == "out" else arcs.flip(0)), relative_weights(graph, "arc_weight")


def graph_adjacency(
    graph: Data,
    *,
    self_loops: bool,
    norm: MatrixNorm,
    direction: Direction = "undirected",
    known: int | None = None,
) -> SparseMatrix:
    """Â of a graph (n × n), :func:`normalized_adjacency`, with the weights of its edges if they have some."""
    edges, weight = oriented_edges(graph, direction)
    return normalized_adjacency(edges, graph.num_nodes, weight=weight, self_loops=self_loops, norm=norm, known=known)


def relation_count(graph: Data) -> int:
    """The number of relations of a graph's edges (R), 1 if they are all of one kind."""
    return int(graph.edge_relations.shape[1]) if "edge_relations" in graph else 1


def by_relation(graph: Data) -> list[Data]:
    """The graphs of the edges of each relation (R), all with the same nodes; the graph itself if there is only one."""
    if "edge_relations" not in graph:
        return [graph]
    unit = graph.get("weight_unit", mean_weight(graph))
    parts = []
    for number in range(relation_count(graph)):
        part = Data(num_nodes=graph.num_nodes, known_nodes=known_nodes(graph), weight_unit=unit)
        for kind in ("edge", "arc"):
            if f"{kind}_relations" in graph:
                weight = graph[f"{kind}_relations"][:, number]
                part[f"{kind}_index"] = graph[f"{kind}_index"][:, weight > 0]
                part[f"{kind}_weight"] = weight[weight > 0]
        parts.append(part)
    return parts


def links_to_known(graph: Data, *directions: Direction) -> SparseMatrix:
    """A without loops, as features: the links of each node to the nodes of the training graph (n × known).

    With several directions, their matrices are side by side.
    """
    n, known = graph.num_nodes, known_nodes(graph)
    links = []
    for direction in directions:
        (source, target), weight = oriented_edges(graph, direction)
        entries = torch.ones_like(source) if weight is None else weight
        kept = (source != target) & (target < known)
        places = torch.stack([source, target])[:, kept].numpy()
        links.append(sp.csr_array((entries[kept].to(torch.get_default_dtype()).numpy(), places), shape=(n, known)))
    return SparseMatrix(from_scipy(sp.hstack(links, format="csr")))


def known_nodes(graph: Data) -> int:
    """The number of nodes that were there in training; in a graph that has grown they are the first ones."""
    return int(graph.get("known_nodes", graph.num_nodes))


def relative_weights(graph: Data, of: str = "edge_weight") -> Tensor | None:
    """The weights of a graph's edges (or arcs), if they have some, in units of the edges' mean, the weight of a loop.

    In a graph that has grown, ``weight_unit`` is the mean of the training graph.
    """
    return graph[of] / graph.get("weight_unit", mean_weight(graph)) if of in graph else None


def mean_weight(graph: Data) -> Tensor:
    """The mean weight of a graph's edges, in double precision, in which large weights do not add up to infinity."""
    weight = graph.edge_weight if "edge_weight" in graph else graph.edge_relations[graph.edge_relations > 0]
    mean: Tensor = weight.mean(dtype=torch.float64)
    return mean
