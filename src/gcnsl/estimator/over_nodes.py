"""A classifier whose samples are the nodes of one graph, for scikit-learn's cross-validation and searches."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted
from typing_extensions import Self

from gcnsl.errors import InputError
from gcnsl.estimator.given_graph import as_frame, num_rows
from gcnsl.graph import read_labels
from gcnsl.graph.labels import UNKNOWN


class ClassifierOverNodes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn calls a sample is a node number here; the graph is part of the classifier.

    In each fold the labels of the training nodes are learned from, while features and edges of all nodes are seen, as
    they are in use. If X is a DataFrame, some of its rows stand for their nodes, too.
    :meth:`gcnsl.NodeClassifier.over_nodes` makes one:

        over_nodes = NodeClassifier("gcn-sl", rounds=1).over_nodes(X, edge_index)
        cross_val_score(over_nodes, np.arange(len(y)), y)
        GridSearchCV(over_nodes, {"classifier__epsilon": [0.8, 0.9]}).fit(X, y)  # of a DataFrame X

    The classifier is cloned before it is fitted; the other arguments are those of :meth:`gcnsl.NodeClassifier.fit`.
    """

    def __init__(
        self,
        classifier: Any,
        X: Any,
        edge_index: Any,
        *,
        edge_weight: Any = None,
        directed: bool | None = None,
        node_ids: Any = None,
    ) -> None:
        self.classifier = classifier
        self.X = X
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.directed = directed
        self.node_ids = node_ids

    def fit(self, nodes: Any, y: Any) -> Self:
        """Train with the labels ``y`` (k) of these nodes (numbers, k or k × 1) only."""
        n, labels = num_rows(self.X), np.asarray(y)
        numbers = self._numbers(nodes, n)
        if labels.shape != numbers.shape:
            raise InputError(f"y has shape {labels.shape}: give one label for each of the {len(numbers)} nodes")
        everywhere = np.full(n, None, dtype=object)
        everywhere[numbers] = labels
        edges = {name: getattr(self, name) for name in ("edge_index", "edge_weight", "directed", "node_ids")}
        self.classifier_ = clone(self.classifier).fit(self.X, everywhere, **edges)
        self.classes_ = self.classifier_.classes_
        return self

    def predict(self, nodes: Any) -> NDArray[Any]:
        """Classes of these nodes (k)."""
        check_is_fitted(self)
        everywhere: NDArray[Any] = self.classifier_.predict()
        return everywhere[self._numbers(nodes, len(everywhere))]

    def predict_proba(self, nodes: Any) -> NDArray[Any]:
        """Probabilities of these nodes (k × C)."""
        check_is_fitted(self)
        everywhere: NDArray[Any] = self.classifier_.predict_proba()
        return everywhere[self._numbers(nodes, len(everywhere))]

    def _numbers(self, nodes: Any, n: int) -> NDArray[np.int64]:
        nodes = as_frame(nodes)
        if isinstance(nodes, pd.DataFrame) and isinstance(X := as_frame(self.X), pd.DataFrame):
            nodes = X.index.get_indexer(nodes.index)
        return node_numbers(nodes, n)


def node_numbers(nodes: Any, n: int) -> NDArray[np.int64]:
    """Node numbers from numbers (k, or k × 1) or from a mask (n)."""
    given = np.asarray(nodes)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.dtype == bool and given.shape == (n,):
        return np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not ((given >= 0) & (given < n)).all():
        raise InputError(
            f"nodes has shape {given.shape} and dtype {given.dtype}: give numbers from 0 to {n - 1}, or a boolean for "
            f"each of the {n} nodes"
        )
    return given


def labelled_nodes(y: Any, nodes: Any, n: int, classes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The numbers of those nodes that have a label, all or some of n, and their labels; a class is never unknown."""
    truth, labelled = read_labels(y, unknown=[text for text in UNKNOWN if text not in set(map(str, classes.tolist()))])
    if len(truth) != n:
        raise InputError(f"y has {len(truth)} entries: give one label for each of the {n} nodes")
    counted = np.arange(n) if nodes is None else node_numbers(nodes, n)
    counted = counted[labelled[counted]]
    if not len(counted):
        raise InputError("y has no label among the nodes to be counted: give labels, or other nodes")
    return counted, truth[counted]
