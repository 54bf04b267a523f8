"""A classifier whose samples are the nodes of one graph, for scikit-learn's cross-validation and searches."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted
from typing_extensions import Self

from gcnsl.errors import InputError


class ClassifierOverNodes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What scikit-learn calls a sample is a node number here; the graph is part of the classifier.

    In each fold the labels of the training nodes are learned from, while features and edges of all nodes are seen, as
    they are in use. :meth:`gcnsl.NodeClassifier.over_nodes` makes one:

        over_nodes = NodeClassifier("gcn-sl", rounds=1).over_nodes(X, edge_index)
        cross_val_score(over_nodes, np.arange(len(y)), y)
        GridSearchCV(over_nodes, {"classifier__epsilon": [0.8, 0.9]}).fit(np.arange(len(y)), y)

    Args:
        classifier: Cloned and fitted each time.
        X: Features of all nodes.
        edge_index: All edges.
    """

    def __init__(self, classifier: Any, X: Any, edge_index: Any) -> None:
        self.classifier = classifier
        self.X = X
        self.edge_index = edge_index

    def fit(self, nodes: Any, y: Any) -> Self:
        """Train with the labels of these nodes only.

        Args:
            nodes: Node numbers (k, or k × 1).
            y: Their labels (k).
        """
        numbers, labels = self._numbers(nodes), np.asarray(y)
        if labels.shape != numbers.shape:
            raise InputError(f"y has shape {labels.shape}: give one label for each of the {len(numbers)} nodes")
        everywhere = np.full(self._num_nodes(), None, dtype=object)
        everywhere[numbers] = labels
        self.classifier_ = clone(self.classifier).fit(self.X, everywhere, edge_index=self.edge_index)
        self.classes_ = self.classifier_.classes_
        return self

    def predict(self, nodes: Any) -> NDArray[Any]:
        """Classes of these nodes (k)."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classifier_.predict()[self._numbers(nodes)]
        return labels

    def predict_proba(self, nodes: Any) -> NDArray[Any]:
        """Probabilities of these nodes (k × C)."""
        check_is_fitted(self)
        probabilities: NDArray[Any] = self.classifier_.predict_proba()[self._numbers(nodes)]
        return probabilities

    def _num_nodes(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    def _numbers(self, nodes: Any) -> NDArray[np.int64]:
        numbers, n = np.asarray(nodes), self._num_nodes()
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not ((numbers >= 0) & (numbers < n)).all():
            raise InputError(
                f"nodes has shape {numbers.shape} and dtype {numbers.dtype}: give numbers from 0 to {n - 1}"
            )
        return numbers
