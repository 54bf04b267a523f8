"""What a classifier predicts for every node, as a table."""

from typing import Any

import numpy as np
import pyarrow as pa
from torch_geometric.data import Data

from gcnsl.estimator.node_classifier import NodeClassifier
from gcnsl.training.metrics import most_probable


def prediction_table(classifier: NodeClassifier, data: Data | None = None, *, by_class: bool = False) -> pa.Table:
    """One row per node, in the graph's order: ``id``, ``predicted`` and ``probability``.

    Args:
        classifier: A fitted one.
        data: The graph as it has grown since, checked; ``None`` for the training graph.
        by_class: Whether to add a column ``probability_CLASS`` for each class.
    """
    if data is None:
        probabilities, ids = classifier.predict_proba(), classifier.node_ids_
    else:
        probabilities, ids = classifier.predict_proba_graph(data), data.get("node_ids")
    best = most_probable(probabilities)
    columns: dict[str, Any] = {
        "id": np.arange(len(best)) if ids is None else ids,
        "predicted": classifier.classes_[best],
        "probability": probabilities[np.arange(len(best)), best],
    }
    if by_class:
        columns |= {f"probability_{c}": probabilities[:, i] for i, c in enumerate(classifier.classes_)}
    return pa.table(columns)
