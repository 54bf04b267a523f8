"""The classifier in scikit-learn's cross-validation and searches."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from gcnsl import from_arrays

from .cases import EDGES, NAMES, TRUTH, N, X, classifier

NODES = np.arange(N)


def test_cross_validation_leaves_the_classifier_alone() -> None:
    original = classifier(epochs=40)
    scores = cross_val_score(original.over_nodes(X, EDGES), NODES[:, None], NAMES[TRUTH], cv=3, error_score="raise")
    assert scores.mean() > 0.7
    assert not hasattr(original, "model_")
    with pytest.raises(NotFittedError):
        original.over_nodes(X.tolist(), EDGES).predict(NODES)


def test_weights_and_directions_reach_the_classifier() -> None:
    weight = np.linspace(1, 2, EDGES.shape[1])
    over_nodes = classifier(epochs=2).over_nodes(X, EDGES, edge_weight=weight, directed=True)
    graph = clone(over_nodes).fit(NODES, TRUTH).classifier_.graph_
    expected = from_arrays(X, EDGES, edge_weight=weight, directed=True)
    assert graph.edge_weight.equal(expected.edge_weight)
    assert graph.arc_weight.equal(expected.arc_weight)


def test_only_the_labels_of_the_given_nodes_are_seen() -> None:
    chosen = NODES[::2]
    model = classifier(epochs=3).over_nodes(sp.csr_array(X), EDGES).fit(chosen, TRUTH[chosen])
    seen = model.classifier_.y_
    assert (seen[chosen] == TRUTH[chosen]).all()
    assert (seen[1::2] == -1).all()
    assert model.classes_.tolist() == [0, 1, 2]
    direct = classifier(epochs=3).fit(sp.csr_array(X), np.where(NODES % 2 == 0, TRUTH, -1), edge_index=EDGES)
    assert (model.predict(NODES[1::2]) == direct.predict()[1::2]).all()
    assert (model.predict_proba([5, 3]) == direct.predict_proba()[[5, 3]]).all()
    assert model.score(NODES, TRUTH) == direct.score(None, TRUTH)
