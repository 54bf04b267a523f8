"""A graph as it has grown since training, its nodes in any order: the training nodes are found, the others are new."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.graph.column_encoder import with_encoder
from gcnsl.graph.columns import is_of_edges
from gcnsl.sparse import to_scipy

Ints = NDArray[np.int64]


def in_training_order(trained: Data, data: Data) -> tuple[Data, Ints]:
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
        data = with_encoder(data, encoder)
    known, features = trained.num_nodes, trained.num_features
    if data.num_features != features:
        encoded = "encoder" in trained and "columns" not in data
        hint = "; read tables with from_tables(..., encoder=classifier.encoder_)" if encoded else ""
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
    changed = first_change(trained, ordered)
    if changed is not None:
        raise _mismatch(_what_changed(*changed, trained, ordered))
    return ordered, place


def first_change(trained: Data, data: Data) -> tuple[int, int] | None:
    """Node and feature of the first value that differs from the training graph; ``None`` if all are the same.

    Features that are made of edges may differ, as edges may.
    """
    now = to_scipy(data.x)[: trained.num_nodes]
    nodes, columns = (to_scipy(trained.x) != now).nonzero()
    encoder = trained.get("encoder")
    if encoder is not None and encoder.edge_kinds:
        fixed = ~np.array([is_of_edges(column) for column in encoder.feature_columns])[columns]
        nodes, columns = nodes[fixed], columns[fixed]
    return (int(nodes[0]), int(columns[0])) if len(nodes) else None


def _find(wanted: pd.Index, ids: pd.Index) -> Ints:
    """Where each of the wanted ids is; they are compared as strings if only one side has numbers."""
    if (wanted.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        wanted, ids = wanted.astype(str), ids.astype(str)
    places: Ints = ids.get_indexer(wanted).astype(np.int64)
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
