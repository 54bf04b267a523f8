"""A graph as it has grown since training, its nodes in any order, and what a classifier predicts for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gcnsl.errors import InputError
from gcnsl.estimator.classifier import GCNSLClassifier
from gcnsl.estimator.graph import to_scipy


def predict_grown(classifier: GCNSLClassifier, data: Data) -> NDArray[np.float32]:
    """Probabilities of the classes for the nodes of a graph (n × C), in its own order.

    The training nodes must all be there, with the features they had; other nodes are new, and edges may have changed.

    Args:
        classifier: A fitted one.
        data: A checked graph. Where it and the classifier have ``node_ids``, its training nodes are found by them, else
            they are its first ones.

    Raises:
        InputError: If the classifier is for another graph, naming what differs.
    """
    order = match_nodes(classifier, data)
    x = data.x[torch.from_numpy(order)] if data.x.layout == torch.strided else to_scipy(data.x)[order]
    place = np.argsort(order)
    edges = place[data.edge_index.numpy()]
    probabilities: NDArray[np.float32] = classifier.predict_proba(x, edge_index=edges)[place]
    return probabilities


def match_nodes(classifier: GCNSLClassifier, data: Data) -> NDArray[np.int64]:
    """The nodes of a graph in the order that ``predict`` needs: the training nodes as they were, then the new ones."""
    known, features = classifier.graph_.x.shape
    if data.num_features != features:
        raise _another(f"its nodes have {data.num_features:,} features, and those in training had {features:,}")
    ids, wanted = data.get("node_ids"), classifier.node_ids_
    if ids is None or wanted is None:
        if data.num_nodes < known:
            raise _another(f"it has {data.num_nodes:,} nodes, and training had {known:,}")
        places = np.arange(known)
    else:
        places = _find(wanted, ids)
    _check_features(classifier, data, places)
    new = np.setdiff1d(np.arange(data.num_nodes), places)
    return np.concatenate([places, new])


def _find(wanted: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.int64]:
    """Where each of the wanted ids is; as texts, if one table has numbers and the other not."""
    if (wanted.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        wanted, ids = wanted.astype(str), ids.astype(str)
    index = pd.Index(ids)
    if not index.is_unique:
        raise InputError(f"node_ids has {_plain(index[index.duplicated()][0])!r} twice: give every node its own id")
    places: NDArray[np.int64] = index.get_indexer(pd.Index(wanted)).astype(np.int64)
    missing = np.flatnonzero(places < 0)
    if len(missing):
        raise _another(
            f"{len(missing):,} of the {len(wanted):,} nodes in training are not in it, "
            f"the first is {_plain(wanted[missing[0]])!r}"
        )
    return places


def _check_features(classifier: GCNSLClassifier, data: Data, places: NDArray[np.int64]) -> None:
    """Refuse a graph whose training nodes are not what they were."""
    before, now = to_scipy(classifier.graph_.x), to_scipy(data.x)[places]
    nodes, columns = (before != now).nonzero()
    if not len(nodes):
        return
    node, column = int(nodes[0]), int(columns[0])
    was, is_now = (float(matrix[[node]].toarray()[0, column]) for matrix in (before, now))
    name = node if classifier.node_ids_ is None else _plain(classifier.node_ids_[node])
    feature = data.feature_names[column] if "feature_names" in data else column
    raise _another(f"feature {feature!r} of node {name!r} is {is_now:g}, and was {was:g} in training")


def _another(how: str) -> InputError:
    return InputError(f"the model is for another graph than this one: {how}")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
