import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsl import NodeClassifier, from_tables, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.evaluation import Measured, measure_classifier, measure_split
from gcnsl.evaluation.measured import SURE
from gcnsl.training import measure

from ..auto.cases import make_quick
from .page_cases import trained

GRAPH = synthetic(n=60, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9)
COLOURS = np.array(["blue", "green", "red"])[GRAPH.y.numpy()]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_every_class_by_hand(pairs) -> None:
    y, predicted = np.array(pairs).T
    probabilities = np.full((len(y), 4), 0.1)
    probabilities[np.arange(len(y)), predicted] = 0.7
    found = Measured(probabilities, y, ["a", "b", "c", "d"])
    assert found.nodes == len(y)
    assert found.metrics == pytest.approx(measure(probabilities, y), nan_ok=True)
    for c, each in enumerate(found.classes):
        right, of_class, said = (y == c) & (predicted == c), y == c, predicted == c
        assert (each.name, each.nodes) == ("abcd"[c], of_class.sum())
        if of_class.any():
            assert each.recall == pytest.approx(right.sum() / of_class.sum())
            assert each.precision == (pytest.approx(right.sum() / said.sum()) if said.any() else None)
            assert each.f1 == pytest.approx(2 * right.sum() / (of_class.sum() + said.sum()))
        else:
            assert each.recall is each.precision is each.f1 is None
        assert found.confusion[c] == [int((of_class & (predicted == k)).sum()) for k in range(4)]
    assert sum(found.calibration["nodes"]) == len(y)
    assert json.loads(json.dumps(found.to_dict()))["nodes"] == len(y)


@pytest.fixture(scope="module")
def known():
    """A classifier, its graph with the labels that training did not know, and the numbers of all classes."""
    classifier, truth = trained()
    data = classifier.graph_.clone()
    numbers = np.searchsorted(classifier.classes_, truth.astype(str))
    data.y = data.y.new_tensor(numbers)
    return classifier, data, numbers


def test_nodes_that_training_did_not_know_are_measured(known) -> None:
    classifier, data, numbers = known
    measured = measure_classifier(classifier, data)
    assert measured.kind == "test"
    assert measured.names.tolist() == measured.places.tolist() == list(range(10))
    assert measured.truth.tolist() == numbers[:10].tolist()
    assert measured.classes_everywhere.tolist() == numbers.tolist()
    assert np.array_equal(measured.probabilities, classifier.predict_proba()[:10])
    right = classifier.predict_proba()[:10].argmax(axis=1) == numbers[:10]
    assert measured.metrics["accuracy"] == pytest.approx(right.mean())
    chosen = np.arange(90) % 20 == 3  # of these, training knew all but the first
    assert measure_classifier(classifier, data, nodes=chosen).places.tolist() == [3]


@pytest.mark.parametrize("labels", ["those of training", "none"])
def test_without_others_validation_nodes_are_measured(known, labels) -> None:
    classifier, _, numbers = known
    data = classifier.graph_.clone()
    if labels == "none":
        data.y = None
    measured = measure_classifier(classifier, data)
    assert measured.kind == "validation"
    assert measured.places.tolist() == np.flatnonzero(classifier.val_mask_).tolist()
    assert measured.truth.tolist() == numbers[classifier.val_mask_].tolist()
    assert measured.classes_everywhere.tolist() == classifier.y_.tolist()


def test_what_stands_out(known) -> None:
    classifier, _, _ = known
    measured = measure_classifier(classifier, classifier.graph_)
    predicted, largest = measured.predicted, measured.probabilities.max(axis=1)
    assert sorted(measured.mistakes.tolist()) == np.flatnonzero(predicted != measured.truth).tolist() != []
    assert (np.diff(largest[measured.mistakes]) <= 0).all()
    most, names = measured.most_confused, np.array(measured.class_names)
    pairs = [(names[measured.truth[node]], names[predicted[node]]) for node in measured.mistakes]
    assert most.nodes == pairs.count((most.of, most.taken_for)) == max(map(pairs.count, pairs))
    name, share = measured.baseline
    assert share == pytest.approx((names[measured.truth] == name).mean())
    assert name == names[np.bincount(classifier.y_[classifier.train_mask_]).argmax()]
    assert (measured.sure is None) == (not (largest >= SURE).any())
    truth = np.arange(10) % 3
    perfect = Measured(np.full((10, 3), 0.25) + 0.25 * np.eye(3)[truth], truth, "abc")
    assert (perfect.mistakes.tolist(), perfect.sure, perfect.most_confused) == ([], None, None)


@pytest.fixture(scope="module")
def coin_flips():
    """Labels that nothing tells, but that can be learned by heart: whoever gets most of them right has seen them."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(240, 200)).astype(np.float32), generator.integers(2, size=240)
    return x, y, np.stack([np.arange(240), (np.arange(240) + 1) % 240])


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "out-of-fold"),
        ({"single": True}, "validation"),
        ({"distil": "mlp"}, "validation"),
        ({"keep_validation": True}, "validation"),
    ],
)
def test_nothing_is_measured_on_labels_that_were_learned(coin_flips, options, kind, monkeypatch, tmp_path) -> None:
    make_quick(monkeypatch)
    x, y, edges = coin_flips
    classifier = NodeClassifier("auto", quality="fast", minutes=5, **options).fit(x, y, edge_index=edges)
    if not options:
        assert (classifier.predict() == y).mean() > 0.75, "it has learned them by heart"
    classifier.save(tmp_path / "model")
    for each in (classifier, NodeClassifier.load(tmp_path / "model")):
        measured = measure_classifier(each, each.graph_)
        assert measured.kind == kind
        assert 0.35 < measured.metrics["accuracy"] < 0.65
        if kind == "out-of-fold":
            assert not each.val_mask_.any()
            assert each.train_mask_.all()
            assert measured.in_words.endswith("each predicted by models that had not learned from it")
        else:
            assert measured.places.tolist() == np.flatnonzero(each.val_mask_).tolist()
        board = each.leaderboard_.iloc[0]
        if not (options.keys() & {"single", "distil"}):
            assert board["validation"] == pytest.approx(measured.metrics["accuracy"])
        else:
            assert board["first_fold"] == pytest.approx(measured.metrics["accuracy"])
        scores = each.leaderboard_[["validation", "first_fold"]].to_numpy()
        assert np.nanmax(scores) < 0.7
    if "distil" in options:
        assert (board["model"], board["weight"]) == ("MLP, distilled", 1)
        assert each.leaderboard_["weight"].sum() == 1


def table(ids, x, labels):
    nodes = pd.DataFrame(x, columns=[f"f{i}" for i in range(8)]).assign(id=ids, label=labels)
    once = GRAPH.edge_index[:, GRAPH.edge_index[0] < GRAPH.edge_index[1]].numpy()
    ends = {end: [f"p{i}" for i in once[k]] for k, end in enumerate(("source", "target"))}
    return from_tables(nodes, pd.DataFrame(ends))


@pytest.fixture(scope="module")
def coloured():
    known = np.where(np.arange(60) < 40, COLOURS, None)
    data = table([f"p{i}" for i in range(60)], GRAPH.x.numpy(), known)
    data.train_mask, data.val_mask = ((data.y >= 0) & (torch.arange(60) % 2 == part) for part in (0, 1))
    return NodeClassifier("mlp", epochs=20, device="cpu").fit_graph(data)


def test_only_labels_that_training_did_not_have_are_counted(coloured) -> None:
    order = np.random.default_rng(0).permutation(62)
    ids = np.array([f"p{i}" for i in range(62)])[order]
    x = np.vstack([GRAPH.x.numpy(), GRAPH.x.numpy()[:2]])[order]
    labels = np.append(COLOURS, ["red", "violet"]).astype(object)
    labels[45] = None
    data = table(ids, x, labels[order])
    found = measure_classifier(coloured, data)
    assert (found.kind, found.nodes, found.trained_on, found.unknown) == ("test", 19 + 1, 40, 1)
    predicted = pd.Series(coloured.classes_[coloured.predict_proba_graph(data).argmax(axis=1)], index=ids)
    counted = [f"p{i}" for i in range(40, 61) if i != 45]
    right = [predicted[name] == labels[int(name[1:])] for name in counted]
    assert found.metrics["accuracy"] == pytest.approx(np.mean(right))


DATA = with_random_split(synthetic(n=90, h=0.7, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=2)
DATA.y[:6] = -1
for part in ("train", "val", "test"):
    DATA[f"{part}_mask"][:6] = False
DATA.class_names = ["ash", "beech", "cedar"]
LABELS = np.array([*DATA.class_names, None], dtype=object)[DATA.y.numpy()]


def of_split(method="gcn-sl", data=DATA, *, run=0, all_labels=False, **options):
    small = {} if method == "auto" else {"epochs": 15}
    classifier = NodeClassifier(method, device="cpu", **(small | options))
    classifier.fit_graph(data, run=run, all_labels=all_labels)
    return classifier, measure_split(classifier, data, run)


def test_a_split_is_measured_on_its_test_nodes() -> None:
    classifier, measured = of_split(run=1)
    masks = {name: DATA[f"{name}_mask"][:, 1].numpy() for name in ("train", "val", "test")}
    right = classifier.predict() == LABELS
    assert measured.kind == "test"
    assert measured.places.tolist() == np.flatnonzero(masks["test"]).tolist()
    assert measured.metrics == pytest.approx(classifier.evaluate(None, LABELS, nodes=masks["test"]))
    assert [each.name for each in measured.classes] == DATA.class_names
    for name in ("train", "val"):
        assert measured.learned[name] == (masks[name].sum(), pytest.approx(right[masks[name]].mean()))


def test_it_is_predicted_once(monkeypatch) -> None:
    classifier, calls = of_split()[0], []
    logits = type(classifier.fitted_).logits
    monkeypatch.setattr(type(classifier.fitted_), "logits", lambda fitted: calls.append(1) or logits(fitted))
    measure_split(classifier, DATA, 0)
    assert calls == [1]
