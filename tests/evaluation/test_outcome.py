import copy

import numpy as np
import pandas as pd
import pytest
import torch

from gcnsl import InputError, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.evaluation import run_split
from gcnsl.evaluation.outcome import Preparations
from gcnsl.graph import from_tables, split_masks
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


def test_inputs_are_shared_by_splits_unless_training_nodes_decide_on_them() -> None:
    options = {"seed": 0, "device": torch.device("cpu")}
    words = Preparations(METHODS["mlp"], DATA, **options)
    assert words.on(0) is words.on(1)
    quantities = copy.copy(DATA)
    quantities.x = DATA.x + torch.arange(60)[:, None]
    made = Preparations(METHODS["mlp"], quantities, **options)
    first, second = made.on(0), made.on(1)
    assert made.on(1) is second
    for run, ready in enumerate((first, second)):
        assert ready.inputs[0][DATA.train_mask[:, run]].mean(dim=0).abs().max() < 1e-5


def test_categories_are_those_of_the_training_nodes() -> None:
    towns = np.where(DATA.train_mask[:, 0].numpy(), "in the first", "not in it")
    nodes = pd.DataFrame({"id": np.arange(60), "town": towns, "label": DATA.y.numpy()})
    edges = pd.DataFrame(DATA.edge_index.numpy().T, columns=["source", "target"])
    data = from_tables(nodes, edges)
    data.update({name: DATA[name] for name in ("train_mask", "val_mask", "test_mask")})
    made = Preparations(METHODS["mlp"], data, seed=0, device=torch.device("cpu"))
    assert made.on(0).graph.feature_names == ["town=in the first"]
    assert made.on(1).graph.feature_names == ["town=in the first", "town=not in it"]
