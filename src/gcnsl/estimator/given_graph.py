"""A checked graph from what a user of scikit-learn has: X as an array or a DataFrame, and edges in any form.

A graph as it has grown since training may have its nodes in any order: the training nodes are found, others are new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph import ColumnEncoder, from_arrays, from_tables
from gcnsl.graph.checked_graph import Graph
from gcnsl.graph.column_encoder import with_encoder
from gcnsl.graph.columns import is_of_edges
from gcnsl.graph.edges import check_edges, check_weights
from gcnsl.graph.labels import check_labels
from gcnsl.sparse import to_scipy

ID, LABEL = "node", "label of the node"
"""Columns that the ids and the labels get beside those of X."""
READ_AS_IN_TRAINING = "read tables with from_tables(..., encoder=classifier.encoder_)"


def given_graph(
    X: Any,
    edge_index: Any,
    y: Any = None,
    *,
    edge_weight: Any = None,
    directed: bool | None = None,
    node_ids: Any = None,
    encoder: ColumnEncoder | None = None,
) -> Graph:
    """Make a graph of nodes with features X and labels y; see :meth:`gcnsl.NodeClassifier.fit` for the arguments.

    ``encoder`` is that of a fitted model, for a DataFrame whose columns are read as in training.
    """
    X, edge_index = as_frame(X), as_frame(edge_index)
    is_frame = isinstance(X, pd.DataFrame)
    if is_frame and node_ids is None and not X.index.equals(pd.RangeIndex(len(X))):
        node_ids = X.index
    if is_networkx(edge_index) and directed is None:
        directed = edge_index.is_directed()
    n = num_rows(X if X is not None else y)
    if not is_frame:
        ends, weight = edge_ends(edge_index, n, node_ids)
        weights = weight if edge_weight is None else edge_weight
        return from_arrays(X, ends, y, directed=bool(directed), edge_weight=weights, node_ids=node_ids)
    ids = pd.Index(np.arange(n) if node_ids is None else node_ids)
    if not isinstance(edge_index, pd.DataFrame):
        ends, weight = edge_ends(edge_index, n, node_ids)
        first, second = check_edges(ends, n)
        edge_index = pd.DataFrame({"source": ids[first], "target": ids[second]})
        if weight is not None:
            edge_index["weight"] = weight
    if edge_weight is not None:
        edge_index = edge_index.assign(weight=check_weights(edge_weight, len(edge_index)))
    nodes = X.set_axis(X.columns.map(str), axis=1)
    nodes = pd.concat([pd.Series(ids, nodes.index, name=ID), nodes], axis=1)
    nodes[LABEL] = pd.Series([None] * n, nodes.index, dtype=object)
    how: dict[str, Any] = {"id": ID, "label": LABEL, "split": [], "directed": bool(directed), "encoder": encoder}
    try:
        data: Graph = from_tables(nodes, edge_index, **how)
    except InputError as error:
        if node_ids is not None:
            raise
        hint = f"X has neither ids as its index nor node_ids, so that its nodes are 0 to {n - 1}"
        raise InputError(f"{error} ({hint})") from None
    for known in ("y", "class_names", "unknown", "counted_unknown"):
        data[known] = None
    if y is not None:
        data.y, data.class_names = check_labels(y, n)
    if node_ids is None:
        data.node_ids = None
    return data


def as_frame(table: Any) -> Any:
    """A pandas DataFrame of what can be turned into one, such as a frame of polars; all else as it is."""
    return table.to_pandas() if hasattr(table, "to_pandas") else table


def is_networkx(graph: Any) -> bool:
    """Whether this is a graph of networkx."""
    return hasattr(graph, "is_directed") and hasattr(graph, "edges")


def num_rows(values: Any) -> int:
    """The number of nodes that an array-like is about."""
    shape = values.shape if hasattr(values, "shape") else np.asarray(values, dtype=object).shape
    if not shape:
        what = "None" if values is None else f"a {type(values).__name__}"
        raise InputError(f"X is {what}, which does not say how many nodes there are: give an array of shape (n, 0)")
    return int(shape[0])


def edge_ends(edges: Any, n: int, node_ids: Any = None) -> tuple[Any, NDArray[np.float64] | None]:
    """Node numbers (2 × E) and weights (E, or ``None``) of edges in any form; see :meth:`gcnsl.NodeClassifier.fit`.

    A graph of networkx and a DataFrame hold ids or, if the nodes have none, numbers.
    """
    if sp.issparse(edges):
        if edges.shape != (n, n):
            raise InputError(f"edge_index is a matrix of shape {edges.shape}: give {n} × {n}, or node numbers (2 × E)")
        entries = sp.coo_array(edges)
        entries.sum_duplicates()
        entries.eliminate_zeros()
        weighted = entries.dtype.kind == "f" and (entries.data != 1).any()
        return np.stack([entries.row, entries.col]), entries.data if weighted else None
    if is_networkx(edges):
        table = pd.DataFrame(edges.edges(data="weight"), columns=["source", "target", "weight"])
        if table["weight"].isna().all():
            table = table[["source", "target"]]
        edges = table.fillna({"weight": 1.0})
    if not isinstance(edges, pd.DataFrame):
        return edges, None
    columns = [edges[name] for name in ("source", "target") if name in edges]
    columns = columns if len(columns) == 2 else [edges.iloc[:, 0], edges.iloc[:, 1]]
    ids = pd.RangeIndex(n) if node_ids is None else pd.Index(node_ids)
    ends = [ids.get_indexer(pd.Index(column)) for column in columns]
    for column, found in zip(columns, ends, strict=True):
        if (found < 0).any():
            row = int((found < 0).argmax())
            known = "a node number" if node_ids is None else "the id of a node"
            hint = "; give node_ids, or X as a DataFrame with the ids as its index" if node_ids is None else ""
            raise InputError(f"edge_index, row {row + 1}: {column.iloc[row]!r} is not {known}{hint}")
    weight = edges["weight"].to_numpy(np.float64) if "weight" in edges else None
    return np.stack(ends), weight


def in_training_order(trained: Data, data: Data) -> tuple[Data, NDArray[np.int64]]:
    """The checked graph ``data`` with the nodes of the training graph first, as they were, and then the new ones.

    If both graphs have ids, the training nodes are found by them, and new nodes are sorted by them, so that predictions
    do not depend on the order of rows; if not, the training nodes are the first nodes of ``data``. Columns of a table
    are encoded as in training.

    Returns:
        The graph (its ``x`` and edges, with arcs and weights), and the place in it of each node of ``data``.

    Raises:
        InputError: If the training nodes are not all there, with the features they had; it names what differs.
    """
    encoder = trained.get("encoder")
    if encoder is not None and data.get("columns") is not None and data.encoder is not encoder:
        now, then = (each.relations and ", ".join(each.relations.names) for each in (data.encoder, encoder))
        if now and then and now != then:
            raise _mismatch(f"its kinds of edges are {now}, and those in training were {then}; {READ_AS_IN_TRAINING}")
        data = with_encoder(data, encoder)
    known, features = trained.num_nodes, trained.num_features
    if data.num_features != features:
        encoded = "encoder" in trained and "columns" not in data
        hint = f"; {READ_AS_IN_TRAINING}" if encoded else ""
        raise _mismatch(f"its nodes have {data.num_features:,} features, and those in training had {features:,}{hint}")
    node_ids, ids = trained.get("node_ids"), data.get("node_ids")
    if node_ids is None or ids is None:
        if data.num_nodes < known:
            raise _mismatch(f"it has {data.num_nodes:,} nodes, and training had {known:,}")
        ordered, place = data, np.arange(data.num_nodes)
    else:
        found = _find(node_ids, ids)
        new = np.setdiff1d(np.arange(data.num_nodes), found)
        new = new[np.argsort(ids.to_numpy()[new].astype(str), kind="stable")]
        order = np.concatenate([found, new])
        ordered, place = data.subgraph(torch.from_numpy(order)), np.argsort(order)
    now = to_scipy(ordered.x)[: trained.num_nodes]
    nodes, columns = (to_scipy(trained.x) != now).nonzero()
    if encoder is not None and encoder.edge_kinds:  # features that are made of edges may differ, as edges may
        fixed = ~np.array([is_of_edges(column) for column in encoder.feature_columns])[columns]
        nodes, columns = nodes[fixed], columns[fixed]
    if len(nodes):
        raise _mismatch(_what_changed(int(nodes[0]), int(columns[0]), trained, ordered))
    return ordered, place


def _find(wanted: pd.Index, ids: pd.Index) -> NDArray[np.int64]:
    """Where each of the wanted ids is; they are compared as strings if only one side has numbers."""
    if (wanted.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        wanted, ids = wanted.astype(str), ids.astype(str)
    places: NDArray[np.int64] = ids.get_indexer(wanted).astype(np.int64)
    missing = wanted[places < 0].tolist()
    if missing:
        count = f"{len(missing):,} of the {len(wanted):,} nodes in training are not in it"
        raise _mismatch(f"{count}, the first is {missing[0]!r}")
    return places


def _what_changed(node: int, column: int, trained: Data, data: Data) -> str:
    was, is_now = (float(graph.x[node].to_dense()[column]) for graph in (trained, data))
    name = trained.node_ids.tolist()[node] if "node_ids" in trained else node
    feature = data.feature_names[column] if "feature_names" in data else column
    return (
        f"feature {feature!r} of node {name!r} is {is_now:g}, and was {was:g} in training; a grown graph holds the "
        "training nodes as they were, and without ids it holds them first and in their order"
    )


def _mismatch(how: str) -> InputError:
    return InputError(f"the model is for another graph than this one: {how}")
