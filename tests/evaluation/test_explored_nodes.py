import json

import numpy as np
import pytest

from gcnsl.estimator.explanation import explain
from gcnsl.evaluation import explored_nodes
from gcnsl.evaluation.explored_nodes import ExploredNodes

from .page_cases import trained

IDS = np.array([f"p{i}" for i in range(90)])


@pytest.fixture(scope="module")
def classifier():
    return trained("gcn-sl-plus", ids=IDS)[0]


@pytest.fixture
def explored(classifier):
    return ExploredNodes(classifier, np.where(np.arange(90) == 3, 2, classifier.y_))


def test_a_view_says_what_the_explanation_says(classifier, explored) -> None:
    explored.explain([12], seconds=0)
    told, (view,) = explain(classifier, 12), explored.views.values()
    assert explored.nodes[explored.place(12)][0] == "p12"
    assert [classifier.classes_[c] for c, _ in view["likely"]] == list(told.probabilities)
    assert dict(view["evidence"]) == pytest.approx(told.evidence, abs=0.006)
    for part, neighbours in (("given", told.original), ("learned", told.reconnected)):
        assert view[part]["count"] == len(neighbours)
        assert view[part]["summary"] == told.summary(neighbours)
        drawn = neighbours[: explored_nodes.DRAWN]
        assert [explored.nodes[place][0] for place, *_ in view[part]["nodes"]] == [other.id for other in drawn]
        assert [both for *_, both, _ in view[part]["nodes"]] == [o.original and o.reconnected for o in drawn]
    assert [words for *_, words in view["learned"]["nodes"]] == [
        "; ".join(map(str, other.reasons)) for other in told.reconnected[: explored_nodes.DRAWN]
    ]
    json.dumps([explored.nodes, explored.views], allow_nan=False)


def test_nodes_say_what_is_known_true_and_predicted(classifier, explored, monkeypatch) -> None:
    monkeypatch.setattr(explored_nodes, "FEATURED", 0)
    explored.explain([3], seconds=60)
    assert len(explored.views) == len(explored.nodes) == 90
    probabilities = classifier.predict_proba()
    for number in range(90):
        name, known, truth, predicted, probability, use = explored.nodes[explored.place(number)]
        assert (name, known, predicted) == (f"p{number}", classifier.y_[number], probabilities[number].argmax())
        assert truth == (2 if number == 3 else known)
        assert probability == pytest.approx(probabilities[number].max(), abs=5e-4)
        assert use == (1 if classifier.train_mask_[number] else 2 if classifier.val_mask_[number] else 0)


def test_the_wanted_come_first_then_their_neighbours(classifier, explored, monkeypatch) -> None:
    order = []
    monkeypatch.setattr(explored_nodes, "FEATURED", 0)
    monkeypatch.setattr(explored_nodes, "explain", lambda *a, **k: order.append(a[1]) or explain(*a, **k))
    explored.explain([12, 7], seconds=60)
    shown = []
    for number in (12, 7):
        told = explain(classifier, number)
        shown += [int(o.id[1:]) for o in (*told.original[:12], *told.reconnected[:12])]
    expected = list(dict.fromkeys([12, 7, *shown]))
    assert order[: len(expected)] == expected
    assert sorted(order) == list(range(90))


def test_time_and_size_are_bounded(classifier, explored, monkeypatch) -> None:
    calls = []
    explored.explain([], seconds=0, on_progress=lambda *numbers: calls.append(numbers))
    assert calls == [(1, 90)]
    assert len(explored.views) == 1
    monkeypatch.setattr(explored_nodes, "MOST_BYTES", 5000)
    bounded = ExploredNodes(classifier, classifier.y_)
    bounded.explain([], seconds=60)
    sizes = [len(json.dumps(view)) for view in bounded.views.values()]
    assert sum(sizes[:-1]) <= 5000 < sum(sizes)


def test_features_are_for_the_first(explored, monkeypatch) -> None:
    monkeypatch.setattr(explored_nodes, "FEATURED", 2)
    explored.explain([5, 6, 7], seconds=60)
    has_features = [bool(explored.views[explored.place(number)]["features"]) for number in (5, 6, 7)]
    assert has_features == [True, True, False]


def test_without_a_learned_graph_and_with_a_crowded_one() -> None:
    plain = ExploredNodes((made := trained("mlp")[0]), made.y_)
    plain.explain([0], seconds=0)
    assert plain.views[plain.place(0)]["learned"] is None
    crowded = ExploredNodes((made := trained("gcn-sl", epsilon=0.01, feature_shift=100.0)[0]), made.y_)
    crowded.explain([0], seconds=0)
    view = crowded.views[crowded.place(0)]
    assert view["crowded"]
    assert (view["learned"]["count"], view["learned"]["nodes"]) == (89, [])
