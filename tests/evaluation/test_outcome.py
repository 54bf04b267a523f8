import copy

import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.evaluation import run_split
from gcnsl.graph import split_masks
from gcnsl.methods import METHODS, prepare

DATA = with_random_split(synthetic(n=60, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.8), runs=2)
QUICK = METHODS["gcn-sl-cc"].with_options(hidden_channels=4, n_components=3, n_anchors=20, epochs=6)


def prepared(data=DATA):
    return prepare(QUICK, data, seed=0, device=torch.device("cpu"))


def test_a_run_learns_from_its_split_and_repeats() -> None:
    ready = prepared()
    first, again = (run_split(ready, run=1, seed=3) for _ in range(2))
    history = first.fitted.history
    assert history.values == again.fitted.history.values
    assert set(history.values) == {"train_loss", "val_loss", "train_accuracy", "val_accuracy"}
    predicted = first.fitted.logits().argmax(dim=1)
    for name, mask in split_masks(DATA, 1).items():
        assert first.accuracy[name] == pytest.approx(float((predicted == DATA.y)[mask].float().mean()))
    assert first.accuracy["val"] == pytest.approx(history.best["val_accuracy"])
    assert run_split(ready, run=1, seed=4).fitted.history.values != history.values


def test_test_labels_decide_nothing() -> None:
    blind = copy.copy(DATA)
    blind.y = torch.where(DATA.test_mask[:, 0], (DATA.y + 1) % 3, DATA.y)
    seen, wrong = (run_split(prepared(data), run=0, seed=0).fitted.history for data in (DATA, blind))
    assert seen.values == wrong.values
    watched = run_split(prepared(), run=0, seed=0, watch_test=True).fitted.history
    assert len(watched["test_accuracy"]) == len(watched)
    assert {name: watched[name] for name in seen.values} == seen.values


def test_every_part_of_the_split_is_needed() -> None:
    partial = copy.copy(DATA)
    partial.test_mask = torch.zeros_like(DATA.test_mask)
    with pytest.raises(InputError, match="the graph has no test nodes in run 0"):
        run_split(prepared(partial), run=0, seed=0)
