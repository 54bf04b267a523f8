import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnsl import GCNSLClassifier, InputError, NodeClassifier, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.evaluation.training_report import report_on
from gcnsl.graph import edge_homophily

from ..selection.cases import make_quick

DATA = with_random_split(synthetic(n=90, h=0.7, classes=3, degree=4, features=12, seed=0, signal=0.9), runs=2)
DATA.y[:6] = -1
for part in ("train", "val", "test"):
    DATA[f"{part}_mask"][:6] = False
DATA.class_names = ["ash", "beech", "cedar"]
LABELS = np.array([*DATA.class_names, None], dtype=object)[DATA.y.numpy()]


def trained(data=DATA, *, options=None, **how):
    small = {"hidden_channels": 6, "n_components": 4, "n_anchors": 30, "epochs": 15, "device": "cpu", "epsilon": 0.6}
    classifier = GCNSLClassifier(**(small | (options or {})))
    classifier.fit_graph(data, **how)
    return classifier, report_on(classifier, data, run=how.get("run", 0))


def test_a_split_shows_what_it_may() -> None:
    classifier, report = trained(run=1)
    masks = {name: DATA[f"{name}_mask"][:, 1].numpy() for name in ("train", "val", "test")}
    assert (classifier.train_mask_ == masks["train"]).all()
    assert (classifier.val_mask_ == masks["val"]).all()
    assert (classifier.y_[masks["test"]] == -1).all()
    right = classifier.predict() == LABELS
    for name, mask in masks.items():
        assert report.nodes[name] == mask.sum()
        assert report.accuracy[name] == pytest.approx(right[mask].mean())
    test = masks["test"]
    assert report.test.nodes == test.sum()
    assert report.test.metrics == pytest.approx(classifier.evaluate(None, LABELS, nodes=test))
    assert [each.name for each in report.test.classes] == DATA.class_names
    assert report.epochs == 15
    assert report.stopped == "epochs"
    assert (report.run, report.device) == (1, "cpu")
    assert report.options["hidden_channels"] == 6
    assert not {"device", "checkpoint", "on_epoch"} & report.options.keys()


def test_both_graphs_are_measured_on_known_labels() -> None:
    classifier, report = trained()
    assert report.original.edges == DATA.edge_report.edges
    assert report.original.homophily == pytest.approx(edge_homophily(DATA.edge_index, DATA.y))
    learned = classifier.learned_graph().edge_index
    learned = learned[:, learned[0] < learned[1]]
    assert report.reconnected.edges == learned.shape[1] > 0
    both = torch.cat([learned, learned.flip(0)], dim=1)
    assert report.reconnected.homophily == pytest.approx(edge_homophily(both, DATA.y))
    assert trained(options={"use_reconnected": False})[1].reconnected is None


def test_a_learned_graph_that_cannot_help_is_doubted() -> None:
    facts = trained()[1].reconnected
    known = DATA.y[DATA.y >= 0]
    assert facts.chance == pytest.approx(sum(float((known == c).float().mean()) ** 2 for c in range(3)))
    assert replace(facts, homophily=0.9, density=0.05).doubt == ""
    assert "it is empty: a smaller epsilon" in replace(facts, edges=0).doubt
    assert "20% of all pairs, so it tells little" in replace(facts, density=0.2).doubt
    assert "no more than by chance" in replace(facts, density=0.05, homophily=facts.chance).doubt


def test_all_labels_leave_nothing_to_test() -> None:
    classifier, report = trained(all_labels=True)
    assert (classifier.y_ >= 0).sum() == 84
    assert (classifier.val_mask_ == DATA.val_mask[:, 0].numpy()).all()
    assert report.nodes["test"] == 0
    assert report.accuracy["test"] is None
    assert report.test is None


def test_a_split_without_validation_or_test_nodes() -> None:
    data = copy.copy(DATA)
    del data.val_mask, data.test_mask
    classifier, report = trained(data)
    used = classifier.train_mask_ | classifier.val_mask_
    assert (used == DATA.train_mask[:, 0].numpy()).all()
    assert classifier.val_mask_.any()
    assert report.accuracy["test"] is None


def test_what_can_not_be_trained_on() -> None:
    with pytest.raises(InputError, match=r"run\(2\) must be from 0 to 1: the graph has 2 split"):
        trained(run=2)


def test_an_ensemble_of_several_folds_has_no_validation_nodes(monkeypatch) -> None:
    make_quick(monkeypatch)
    classifier = NodeClassifier("auto", quality="fast", minutes=5, device="cpu").fit_graph(DATA)
    report = report_on(classifier, DATA)
    assert report.accuracy["val"] is None
    assert report.nodes["val"] == 0
    assert report.nodes["train"] == int((DATA.train_mask | DATA.val_mask)[:, 0].sum())
    assert report.accuracy["test"] is not None


def test_one_of_a_single_fold_has_some() -> None:
    classifier = NodeClassifier("auto", minutes=1e-6, device="cpu").fit_graph(DATA)
    report = report_on(classifier, DATA)
    right = (classifier.predict() == LABELS)[classifier.val_mask_].mean()
    assert report.accuracy["val"] == pytest.approx(right)
    assert classifier.leaderboard_["first_fold"].iloc[0] == pytest.approx(right)
