"""A checked graph from data in memory: arrays, SciPy matrices, networkx graphs or PyG Data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.arrays import check_features
from gcnsl.graph.labels import check_labels
from gcnsl.graph.masks import MASKS, check_masks
from gcnsl.graph.simple_edges import check_edges, simple_undirected


def from_arrays(
    x: Any,
    edge_index: Any,
    y: Any = None,
    *,
    class_names: Sequence[str] | None = None,
    node_ids: Any = None,
    feature_names: Sequence[str] | None = None,
    train_mask: Any = None,
    val_mask: Any = None,
    test_mask: Any = None,
) -> Data:
    """Make a checked graph from arrays. All other ways to make a graph call this function.

    Args:
        x: Features (n × d), dense or sparse. Sparse features stay sparse (torch CSR).
        edge_index: Node numbers of the edges (2 × E), which are made simple and undirected: see
            :mod:`gcnsl.graph.simple_edges`.
        y: One label per node: class numbers with -1 for unknown, or names with ``None`` for unknown.
        class_names: Names of the classes, if ``y`` holds class numbers.
        node_ids: The caller's names for the nodes.
        feature_names: Names of the columns of ``x``.
        train_mask: Training nodes (n or n × runs, boolean).
        val_mask: Validation nodes.
        test_mask: Test nodes.

    Returns:
        Data with ``x`` (float32), ``edge_index`` (simple, undirected, sorted) and ``edge_report``, and with ``y``,
        ``class_names``, ``node_ids``, ``feature_names`` and the masks (n × runs) where they are given.

    Raises:
        InputError: If anything can't be used; the message names the argument, the place and a remedy.
    """
    features = check_features(x)
    num_nodes, num_features = features.shape
    source, target = check_edges(edge_index, num_nodes)
    simple, report = simple_undirected(source, target, num_nodes)

    data = Data(x=features, edge_index=torch.from_numpy(simple))
    data.edge_report = report
    labels, names = None, [] if class_names is None else [str(c) for c in class_names]
    if y is not None:
        labels, names = check_labels(y, num_nodes, class_names)
        data.y = labels
    if y is not None or class_names is not None:
        data.class_names = names
    if node_ids is not None:
        data.node_ids = np.asarray(_of_length(node_ids, num_nodes, "node_ids", "node"))
    if feature_names is not None:
        data.feature_names = [str(f) for f in _of_length(feature_names, num_features, "feature_names", "column of x")]
    masks = dict(zip(MASKS, (train_mask, val_mask, test_mask), strict=True))
    for name, mask in check_masks(masks, labels, num_nodes, names).items():
        data[name] = mask
    return data


def _of_length(names: Any, length: int, argument: str, what: str) -> Any:
    if len(names) != length:
        raise InputError(f"{argument} has {len(names)} entries: give {length}, one per {what}")
    return names


def from_scipy(adjacency: Any, x: Any, y: Any = None, **options: Any) -> Data:
    """Make a checked graph from a SciPy adjacency matrix.

    Args:
        adjacency: Square matrix (n × n); every non-zero entry is an edge.
        x: Features (n × d).
        y: One label per node.
        **options: Further arguments of :func:`from_arrays`.
    """
    entries = adjacency.tocoo()
    if entries.shape[0] != entries.shape[1]:
        raise InputError(
            f"adjacency has shape {entries.shape}: give a square matrix with one row and one column per node"
        )
    features = check_features(x)
    if features.shape[0] != entries.shape[0]:
        raise InputError(f"x has {features.shape[0]} rows, but adjacency has {entries.shape[0]}: give one row per node")
    kept = entries.data != 0
    return from_arrays(features, np.stack([entries.row[kept], entries.col[kept]]), y, **options)


def from_networkx(
    graph: Any, *, features: str | Sequence[str] = "x", label: str | None = "label", **options: Any
) -> Data:
    """Make a checked graph from a networkx graph. The nodes become ``node_ids``.

    Args:
        graph: Any networkx graph.
        features: The node attribute with a vector, or a list of node attributes with one number each.
        label: The node attribute with the class, which unlabelled nodes lack; ``None`` for a graph without labels.
        **options: Further arguments of :func:`from_arrays`.
    """
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    wanted = [features] if isinstance(features, str) else list(features)
    rows = []
    for node in nodes:
        attributes = graph.nodes[node]
        missing = [name for name in wanted if name not in attributes]
        if missing:
            raise InputError(
                f"node {node!r} has no attribute {missing[0]!r}: set it, or give other attributes as features"
            )
        rows.append(attributes[features] if isinstance(features, str) else [attributes[name] for name in wanted])
    labels = None
    if label is not None and any(label in graph.nodes[node] for node in nodes):
        labels = np.array([graph.nodes[node].get(label) for node in nodes], dtype=object)
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    ids = np.empty(len(nodes), dtype=object)
    ids[:] = nodes
    return from_arrays(rows if rows else np.empty((0, len(wanted))), ends.T, labels, node_ids=ids, **options)


def from_data(data: Data) -> Data:
    """Make a checked graph from PyG Data. Attributes that :func:`from_arrays` does not know are left out."""
    if data.x is None:
        raise InputError("data.x is None: give features, one row per node")
    if data.edge_index is None:
        raise InputError("data.edge_index is None: give the edges, 2 × E (2 × 0 for a graph without edges)")
    names = ("class_names", "node_ids", "feature_names", *MASKS)
    return from_arrays(data.x, data.edge_index, data.y, **{name: data.get(name) for name in names})
