"""A checked graph from what people already have in memory: arrays, SciPy matrices, networkx, PyG Data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.checks import check_edges, check_features, check_labels, check_masks
from gcnsl.graph.edges import simple_undirected


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
    """Check arrays and make a graph of them. Every other way into the package ends here.

    Args:
        x: Features, n × d; dense, or sparse and then kept sparse (torch CSR).
        edge_index: 2 × E node numbers, in any direction and with any repeats (:mod:`gcnsl.graph.edges` has the rule).
        y: One label a node: class numbers with -1 for unknown, or names with ``None`` for unknown.
        class_names: Names for class numbers.
        node_ids: The caller's own names for the nodes; kept for reporting.
        feature_names: Likewise for the columns of ``x``.
        train_mask: n or n × runs, boolean. Likewise ``val_mask`` and ``test_mask``.

    Returns:
        Data with ``x`` (float32), ``edge_index`` (simple, undirected, sorted), ``edge_report``, and as far as they are
        given ``y``, ``class_names``, ``node_ids``, ``feature_names`` and the masks (n × runs).

    Raises:
        InputError: If anything cannot be used, naming argument, place and remedy.
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
    masks = {"train_mask": train_mask, "val_mask": val_mask, "test_mask": test_mask}
    for name, mask in check_masks(masks, labels, num_nodes, names).items():
        data[name] = mask
    return data


def _of_length(names: Any, wanted: int, argument: str, what: str) -> Any:
    if len(names) != wanted:
        raise InputError(f"{argument} has {len(names)} entries: give {wanted}, one for each {what}")
    return names


def from_scipy(adjacency: Any, x: Any, y: Any = None, **options: Any) -> Data:
    """A graph from a square SciPy adjacency matrix (n × n, any stored non-zero entry is an edge) and features.

    The options are those of :func:`from_arrays`.
    """
    entries = adjacency.tocoo()
    if entries.shape[0] != entries.shape[1]:
        raise InputError(f"adjacency has shape {entries.shape}: give a square matrix, one row and one column a node")
    features = check_features(x)
    if features.shape[0] != entries.shape[0]:
        raise InputError(f"x has {features.shape[0]} rows, but adjacency has {entries.shape[0]}: give one row a node")
    kept = entries.data != 0
    return from_arrays(features, np.stack([entries.row[kept], entries.col[kept]]), y, **options)


def from_networkx(
    graph: Any, *, features: str | Sequence[str] = "x", label: str | None = "label", **options: Any
) -> Data:
    """A graph from networkx; node keys become ``node_ids``.

    Args:
        graph: Any networkx graph.
        features: The node attribute that holds a vector, or the attributes that hold one number each.
        label: The node attribute with the class; a node without it is unlabelled; ``None`` for no labels.
        **options: Those of :func:`from_arrays`.
    """
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    wanted = [features] if isinstance(features, str) else list(features)
    rows = []
    for node in nodes:
        attributes = graph.nodes[node]
        missing = [name for name in wanted if name not in attributes]
        if missing:
            raise InputError(f"node {node!r} has no attribute {missing[0]!r}: set it, or name others with features=")
        rows.append(attributes[features] if isinstance(features, str) else [attributes[name] for name in wanted])
    labels = None
    if label is not None and any(label in graph.nodes[node] for node in nodes):
        labels = np.array([graph.nodes[node].get(label) for node in nodes], dtype=object)
    ends = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    ids = np.empty(len(nodes), dtype=object)
    ids[:] = nodes
    return from_arrays(rows if rows else np.empty((0, len(wanted))), ends.T, labels, node_ids=ids, **options)


def from_data(data: Data) -> Data:
    """A graph from PyG Data, checked and repaired; what the package does not know is left behind."""
    if data.x is None:
        raise InputError("data.x is None: nodes need features, one row a node")
    if data.edge_index is None:
        raise InputError("data.edge_index is None: give the edges, 2 × E (an empty one for a graph without edges)")
    names = ("class_names", "node_ids", "feature_names", "train_mask", "val_mask", "test_mask")
    return from_arrays(data.x, data.edge_index, data.y, **{name: data.get(name) for name in names})
