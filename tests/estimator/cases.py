"""A graph and a classifier small enough to be fitted in a blink."""

import numpy as np

from gcnsl import GCNSLClassifier, synthetic

N = 90
DATA = synthetic(n=N, h=0.8, classes=3, degree=5, features=20, seed=0, signal=0.7)
X, EDGES, TRUTH = DATA.x.numpy(), DATA.edge_index.numpy(), DATA.y.numpy()
HIDDEN = np.arange(N) % 3 == 2
Y = np.where(HIDDEN, -1, TRUTH)
NAMES = np.array(["ash", "beech", "cedar"])


def classifier(**options) -> GCNSLClassifier:
    small = {"hidden_channels": 6, "n_components": 4, "n_anchors": 30, "epochs": 25, "device": "cpu"}
    small |= {"epsilon": 0.9, "self_loops": True}  # whatever the defaults are
    return GCNSLClassifier(**(small | options))


def fitted(x=X, y=Y, *, fit=None, **options) -> GCNSLClassifier:
    return classifier(**options).fit(x, y, edge_index=EDGES, **(fit or {}))


def same_weights(a: GCNSLClassifier, b: GCNSLClassifier) -> bool:
    pairs = zip(a.model_.state_dict().values(), b.model_.state_dict().values(), strict=True)
    return all(x.equal(y) for x, y in pairs)
