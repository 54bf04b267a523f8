"""Small graphs and classifiers for the page about a model."""

import numpy as np

from gcnsl import NodeClassifier, synthetic

HOSTILE = ["$x_$", "</script><b>x", "<!--<script>", "a name that never seems to end, whatever one does " * 3]


def trained(
    method: str = "mlp", *, names=("blue", "green", "red"), n: int = 90, unlabelled: int = 10, ids=None, **options
):
    """A classifier of nodes with these classes; the first nodes have no label. Also the true classes of all nodes."""
    data = synthetic(n=n, h=0.6, classes=len(names), degree=4, features=max(8, len(names)), seed=0, signal=0.7)
    truth = np.array(names, dtype=object)[data.y.numpy()]
    known = np.where(np.arange(n) < unlabelled, None, truth)
    classifier = NodeClassifier(method, device="cpu", **({} if method == "auto" else {"epochs": 5}) | options)
    return classifier.fit(data.x, known, edge_index=data.edge_index, node_ids=ids), truth
