import numpy as np
import pytest

from gcnsl import NodeClassifier
from gcnsl.evaluation.measured_nodes import SURE, measured_nodes

from ..auto.cases import make_quick
from .page_cases import trained


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
    measured = measured_nodes(classifier, data)
    assert measured.kind == "test"
    assert measured.names.tolist() == measured.places.tolist() == list(range(10))
    assert measured.truth.tolist() == numbers[:10].tolist()
    assert measured.all_classes.tolist() == numbers.tolist()
    assert np.array_equal(measured.probabilities, classifier.predict_proba()[:10])
    right = classifier.predict_proba()[:10].argmax(axis=1) == numbers[:10]
    assert measured.quality.metrics["accuracy"] == pytest.approx(right.mean())


def test_only_some_of_them(known) -> None:
    classifier, data, _ = known
    chosen = np.arange(90) % 20 == 3  # of these, training knew all but the first
    assert measured_nodes(classifier, data, nodes=chosen).places.tolist() == [3]


@pytest.mark.parametrize("labels", ["those of training", "none"])
def test_without_others_validation_nodes_are_measured(known, labels) -> None:
    classifier, _, numbers = known
    data = classifier.graph_.clone()
    if labels == "none":
        data.y = None
    measured = measured_nodes(classifier, data)
    assert measured.kind == "validation"
    assert measured.places.tolist() == np.flatnonzero(classifier.val_mask_).tolist()
    assert measured.truth.tolist() == numbers[classifier.val_mask_].tolist()
    assert measured.all_classes.tolist() == classifier.y_.tolist()


def test_what_stands_out(known) -> None:
    classifier, _, _ = known
    measured = measured_nodes(classifier, classifier.graph_)
    predicted, largest = measured.probabilities.argmax(axis=1), measured.probabilities.max(axis=1)
    wrong = [node for node in range(len(predicted)) if predicted[node] != measured.truth[node]]
    assert sorted(measured.mistakes.tolist()) == wrong != []
    assert (np.diff(largest[measured.mistakes]) <= 0).all()
    most = measured.most_confused
    pairs = [(measured.truth[node], predicted[node]) for node in wrong]
    assert most.nodes == max(map(pairs.count, pairs))
    assert (
        pairs.count(tuple(classifier.classes_.tolist().index(name) for name in (most.of, most.taken_for))) == most.nodes
    )
    name, share = measured.baseline
    assert share == pytest.approx((classifier.classes_[measured.truth] == name).mean())
    counts = [(classifier.y_[classifier.train_mask_] == c).sum() for c in range(3)]
    assert name == classifier.classes_[np.argmax(counts)]
    assert (measured.sure is None) == (not (largest >= SURE).any())


def test_nothing_stands_out_if_all_is_right_and_unsure(known) -> None:
    from dataclasses import replace

    from gcnsl.evaluation.quality import quality_of

    classifier, data, _ = known
    measured = measured_nodes(classifier, data)
    probabilities = np.full((10, 3), 0.25) + 0.25 * np.eye(3)[measured.truth]
    quality = quality_of(probabilities, measured.truth, classifier.classes_.tolist())
    perfect = replace(measured, probabilities=probabilities, quality=quality)
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
        ({"keep_validation": True, "single": True}, "validation"),
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
        measured = measured_nodes(each, each.graph_)
        assert measured.kind == kind
        assert 0.35 < measured.quality.metrics["accuracy"] < 0.65
        if kind == "out-of-fold":
            assert not each.val_mask_.any()
            assert each.train_mask_.all()
            assert measured.in_words.endswith("each predicted by models that had not learned from it")
        else:
            assert measured.places.tolist() == np.flatnonzero(each.val_mask_).tolist()
        board = each.leaderboard_.iloc[0]
        if not (options.keys() & {"single", "distil"}):
            assert board["validation"] == pytest.approx(measured.quality.metrics["accuracy"])
        else:
            assert board["first_fold"] == pytest.approx(measured.quality.metrics["accuracy"])
        scores = each.leaderboard_[["validation", "first_fold"]].to_numpy()
        assert np.nanmax(scores) < 0.7
    if "distil" in options:
        assert board["model"] == "MLP, distilled"
        assert board["weight"] == 1
        assert each.leaderboard_["weight"].sum() == 1
        assert board["verdict"].startswith("chosen, taught by the ")
