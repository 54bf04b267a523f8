import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnsl import InputError, NodeClassifier, from_tables, synthetic
from gcnsl.evaluation.quality import quality_of, quality_on_unseen
from gcnsl.training import measure

GRAPH = synthetic(n=60, h=0.8, classes=3, degree=4, features=8, seed=0, signal=0.9)
COLOURS = np.array(["blue", "green", "red"])[GRAPH.y.numpy()]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_every_class_by_hand(pairs) -> None:
    y, predicted = np.array(pairs).T
    probabilities = np.full((len(y), 4), 0.1)
    probabilities[np.arange(len(y)), predicted] = 0.7
    quality = quality_of(probabilities, y, ["a", "b", "c", "d"])
    assert quality.nodes == len(y)
    assert quality.metrics == pytest.approx(measure(probabilities, y), nan_ok=True)
    for c, each in enumerate(quality.classes):
        right, of_class, said = (y == c) & (predicted == c), y == c, predicted == c
        assert (each.name, each.nodes) == ("abcd"[c], of_class.sum())
        if of_class.any():
            assert each.recall == pytest.approx(right.sum() / of_class.sum())
            assert each.precision == (pytest.approx(right.sum() / said.sum()) if said.any() else None)
            assert each.f1 == pytest.approx(2 * right.sum() / (of_class.sum() + said.sum()))
        else:
            assert each.recall is each.precision is each.f1 is None
        assert quality.confusion[c] == [int((of_class & (predicted == k)).sum()) for k in range(4)]
    assert sum(quality.calibration["nodes"]) == len(y)


def table(ids, x, labels):
    nodes = pd.DataFrame(x, columns=[f"f{i}" for i in range(8)]).assign(id=ids, label=labels)
    once = GRAPH.edge_index[:, GRAPH.edge_index[0] < GRAPH.edge_index[1]].numpy()
    ends = {end: [f"p{i}" for i in once[k]] for k, end in enumerate(("source", "target"))}
    return from_tables(nodes, pd.DataFrame(ends))


@pytest.fixture(scope="module")
def classifier():
    known = np.where(np.arange(60) < 40, COLOURS, None)
    data = table([f"p{i}" for i in range(60)], GRAPH.x.numpy(), known)
    data.train_mask, data.val_mask = ((data.y >= 0) & (torch.arange(60) % 2 == part) for part in (0, 1))
    return NodeClassifier("mlp", epochs=20, device="cpu").fit_graph(data)


def test_only_labels_that_training_did_not_have_are_counted(classifier) -> None:
    order = np.random.default_rng(0).permutation(62)
    ids = np.array([f"p{i}" for i in range(62)])[order]
    x = np.vstack([GRAPH.x.numpy(), GRAPH.x.numpy()[:2]])[order]
    labels = np.append(COLOURS, ["red", "violet"]).astype(object)
    labels[45] = None
    data = table(ids, x, labels[order])
    found = quality_on_unseen(classifier, data)
    assert (found.quality.nodes, found.trained_on, found.unknown) == (19 + 1, 40, 1)
    predicted = pd.Series(classifier.classes_[classifier.predict_proba_graph(data).argmax(axis=1)], index=ids)
    counted = [f"p{i}" for i in range(40, 61) if i != 45]
    right = [predicted[name] == labels[int(name[1:])] for name in counted]
    assert found.quality.metrics["accuracy"] == pytest.approx(np.mean(right))


def test_without_other_labels_there_is_nothing_to_evaluate(classifier) -> None:
    with pytest.raises(InputError, match="every node that has a label was used in training"):
        quality_on_unseen(classifier, classifier.graph_)
    unlabelled = classifier.graph_.clone()
    unlabelled.y = None
    with pytest.raises(InputError, match="has no labels to evaluate by"):
        quality_on_unseen(classifier, unlabelled)
