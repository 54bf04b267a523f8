"""Decisions of a fitted classifier: thresholds, prediction sets, temperature, and what each node was for."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from gcnsl import InputError, NodeClassifier, from_arrays
from gcnsl.datasets import with_random_split
from gcnsl.estimator.deciding import chosen_temperature
from gcnsl.graph import GraphWarning

from ..auto.cases import make_quick


def rare(n=600, share=0.06, seed=0, classes=("honest", "fraud")):
    """A graph with a rare class that columns tell only vaguely, and its true classes."""
    draw = np.random.default_rng(seed)
    y = (draw.random(n) < share).astype(int)
    x = draw.normal(size=(n, 4)).astype(np.float32) + y[:, None]
    edges = draw.integers(0, n, size=(2, 2 * n))
    return with_random_split(from_arrays(x, edges, np.array(classes)[y])), np.array(classes)[y]


@pytest.fixture(scope="module")
def found():
    data, truth = rare()
    return NodeClassifier("logistic").fit_graph(data), truth, data


def test_a_rare_class_is_found_by_the_f1_threshold(found) -> None:
    classifier, truth, data = found
    chosen, test = classifier.threshold_, data.test_mask[:, 0].numpy()
    assert (chosen.rule, classifier.classes_[chosen.positive]) == ("f1", "fraud")
    p = classifier.predict_proba()[:, chosen.positive]
    assert classifier.predict().tolist() == np.where(p >= chosen.value, "fraud", "honest").tolist()
    likeliest = classifier.classes_[classifier.predict_proba().argmax(axis=1)]
    score = [f1_score(truth[test], said[test], pos_label="fraud") for said in (likeliest, classifier.predict())]
    assert score[1] > score[0]
    assert classifier.score(None, truth, nodes=test) == (classifier.predict() == truth)[test].mean()


def test_a_class_that_only_test_nodes_have_is_no_obstacle() -> None:
    data, _ = rare()
    data.class_names, data.y = [*data.class_names, "unseen"], data.y.clone()
    data.y[data.test_mask[:, 0].nonzero()[0]] = 2
    with pytest.warns(GraphWarning, match="unseen"):
        chosen = NodeClassifier("logistic").fit_graph(data).threshold_
    assert chosen is not None
    assert data.class_names[chosen.positive] == "fraud"


def test_rules_can_be_changed_without_training(found, tmp_path) -> None:
    classifier, truth, _ = found
    unknown = classifier.y_ == -1
    top = classifier.set_threshold("top=15")
    assert (classifier.predict()[unknown] == "fraud").sum() == 15
    assert top.nodes == classifier.val_mask_.sum()
    recall = classifier.set_threshold("recall=.9")
    assert recall.recall >= 0.9
    assert recall.found == (classifier.predict() == "fraud")[classifier.val_mask_ & (truth == "fraud")].sum()
    other = classifier.set_threshold(0.5, positive="honest")
    assert (other.value, classifier.classes_[other.positive]) == (0.5, "honest")
    classifier.set_threshold("cost=fn:9,fp:1")
    classifier.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert loaded.threshold_ == classifier.threshold_
    assert loaded.predict().tolist() == classifier.predict().tolist()
    assert (loaded.predict_set(coverage=0.9) == classifier.predict_set(coverage=0.9)).all()
    assert loaded.used_for().tolist() == classifier.used_for().tolist()
    assert loaded.set_threshold(None) is None
    assert loaded.predict().tolist() == loaded.classes_[loaded.predict_proba().argmax(axis=1)].tolist()
    classifier.set_threshold("auto")


def test_what_each_node_was_for(found) -> None:
    classifier, _, data = found
    uses = classifier.used_for()
    for name, mask in (("training", "train"), ("validation", "val"), ("test", "test")):
        assert (uses == name).tolist() == data[f"{mask}_mask"][:, 0].tolist()
    grown = from_arrays(np.vstack([data.x, data.x[:2]]), data.edge_index)
    assert classifier.used_for(grown)[-3:].tolist() == [uses[-1], "new", "new"]


@pytest.mark.parametrize("options", [{}, {"single": True}])
def test_an_ensemble_decides_out_of_fold(monkeypatch, tmp_path, options) -> None:
    make_quick(monkeypatch)
    data, _ = rare(300)
    classifier = NodeClassifier("auto", quality="fast", minutes=2, **options).fit_graph(data)
    assert classifier.chosen_by_.metric == "average-precision"
    assert classifier.threshold_.rule == "f1"
    assert classifier.held_out().kind == ("validation" if options else "out-of-fold")
    sets = classifier.predict_set(coverage=0.8, by_class=True)
    assert sets.shape == (300, 2)
    assert sets[np.arange(300), classifier.decide(classifier.predict_proba())].all()
    classifier.save(tmp_path / "model")
    assert (NodeClassifier.load(tmp_path / "model").predict_set(coverage=0.8, by_class=True) == sets).all()
    asked = NodeClassifier("auto", quality="fast", minutes=2, metric="accuracy").fit_graph(data)
    assert asked.threshold_ is None


def test_balanced_classes_have_no_threshold_and_several_need_a_name() -> None:
    data, _ = rare(300, 0.4, classes=("a", "b"))
    assert NodeClassifier("logistic").fit_graph(data).threshold_ is None
    draw = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[draw.integers(0, 3, 200)]
    three = (draw.normal(size=(200, 3)).astype(np.float32), y)
    edges = draw.integers(0, 200, (2, 300))
    with pytest.raises(InputError, match=r"threshold\('f1'\) is for one class against the rest: name it as positive"):
        NodeClassifier("logistic", threshold="f1").fit(*three, edge_index=edges)
    classifier = NodeClassifier("logistic").fit(*three, edge_index=edges)
    with pytest.raises(InputError, match="must be one of a, b, c"):
        classifier.set_threshold("f1", positive="d")
    classifier.set_threshold("recall=1", positive="c")
    p = classifier.predict_proba()
    alerts = p[:, 2] >= classifier.threshold_.value
    expected = np.where(alerts, "c", np.array(["a", "b"])[p[:, :2].argmax(axis=1)])
    assert classifier.predict().tolist() == expected.tolist()
    with pytest.raises(InputError, match="coverage"):
        classifier.predict_set(coverage=1)


def test_the_temperature_undoes_what_is_surely_wrong_and_leaves_the_rest() -> None:
    draw = np.random.default_rng(0)
    p = draw.dirichlet([1, 1, 1], size=2000)
    y = np.array([draw.choice(3, p=row) for row in p])
    assert chosen_temperature(p, y) == pytest.approx(1, abs=0.1)
    for power in (3.0, 0.4):
        other = p**power / (p**power).sum(axis=1, keepdims=True)
        assert chosen_temperature(other, y) == pytest.approx(power, rel=0.15)
    assert chosen_temperature(p[:15], y[:15]) == 1
