"""What holds for the classifier of every method: it is fitted, saved, loaded and used on a grown graph."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Data

from gcnsl import InputError, NodeClassifier, from_tables, synthetic
from gcnsl.datasets import with_random_split
from gcnsl.estimator.contributions import LINKS
from gcnsl.estimator.explanation import explain
from gcnsl.graph import ColumnEncoder, from_arrays
from gcnsl.graph.edges import edge_parts
from gcnsl.methods import ALIASES, METHODS
from gcnsl.plain.neighbour_columns import DEGREE, DEGREES, POSITION

from .cases import EDGES, HIDDEN, NAMES, TRUTH, N, X, same_weights

SMALL = {"epochs": 8, "patience": 8}
NARROW = {
    name: SMALL | {"hidden_channels": 6} if "hidden_channels" in method.options() else SMALL
    for name, method in METHODS.items()
}
NARROW["boosted-trees"] = SMALL | {"leaf_nodes": 2}
LABELS = np.where(HIDDEN, None, NAMES[TRUTH])
GROWN_X, GROWN_EDGES = np.vstack([X, X[:3] + 0.5]), np.hstack([EDGES, [[N, N + 1, 4], [2, N, N + 2]]])
STAYS = ("geom-gcn",)
"""Methods that can't take new nodes."""


def fitted(name: str, x=X, **options) -> NodeClassifier:
    classifier = NodeClassifier(name, **(NARROW[ALIASES.get(name, name)] | options), device="cpu")
    return classifier.fit(x, LABELS, edge_index=EDGES, node_ids=[f"n{i}" for i in range(N)])


@pytest.mark.parametrize("name", METHODS)
def test_saved_and_loaded_it_predicts_the_same_bits(tmp_path, name) -> None:
    model = fitted(name)
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model", device="cpu")
    assert (again.predict_proba() == model.predict_proba()).all()
    assert again.classes_.tolist() == NAMES.tolist()
    assert again.node_ids_.tolist() == model.node_ids_.tolist()
    assert again.history_ == model.history_
    assert again.resolved_method() == model.resolved_method()
    assert same_weights(clone(again).fit(X, LABELS, edge_index=EDGES), model), "it can be fitted again"
    if name not in STAYS:
        grown = [some.predict_proba(GROWN_X, edge_index=GROWN_EDGES) for some in (model, again)]
        assert (grown[0] == grown[1]).all()


def test_an_ensemble_keeps_its_temperature(tmp_path) -> None:
    model = NodeClassifier(minutes=0.02, device="cpu", verbose=False).fit(X, LABELS, edge_index=EDGES)
    model.fitted_ = replace(model.fitted_, temperature=2.0)
    model.save(tmp_path / "model")
    grown = [
        some.predict_proba(GROWN_X, edge_index=GROWN_EDGES) for some in (model, NodeClassifier.load(tmp_path / "model"))
    ]
    assert (grown[0] == grown[1]).all()


@pytest.mark.parametrize("name", ["mlp", "gcn", "gcn-sl-plus", "boosted-trees"])
def test_with_directions_and_weights_too(tmp_path, name) -> None:
    weight = np.linspace(0.5, 2, EDGES.shape[1])
    edges = {"edge_index": EDGES, "edge_weight": weight, "directed": True}
    model = NodeClassifier(name, **NARROW[name], device="cpu").fit(X, LABELS, **edges)
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model", device="cpu")
    for part, values in edge_parts(from_arrays(X, **edges)).items():
        assert again.graph_[part].equal(values)
    assert (again.predict_proba() == model.predict_proba()).all()
    assert (again.predict_proba(X, edge_index=EDGES, edge_weight=weight) == model.predict_proba()).all()
    assert model.score(X, TRUTH, edge_index=EDGES, edge_weight=weight) == model.score(None, TRUTH)
    if "weights" in METHODS[name].config.uses:
        with pytest.raises(InputError, match=f"^{name} was trained with the edges' weights"):
            model.predict(X, edge_index=EDGES)
        other = model.predict_proba(X, edge_index=EDGES, edge_weight=weight[::-1])
        assert not (other == model.predict_proba()).all()
    else:
        assert (model.predict_proba(X, edge_index=EDGES) == model.predict_proba()).all()


@pytest.mark.parametrize("name", ["mlp", "twins", "auto"])
def test_scikit_learn_conventions(name) -> None:
    options, wrong = ({"quality": "fast"} if name == "auto" else NARROW[name]), "lambada: .*no such option"
    model = NodeClassifier(name, **options, device="cpu")
    assert clone(model).get_params() == model.get_params()
    assert model.get_params().items() >= options.items()
    assert model.set_params(random_state=4, **options).random_state == 4
    with pytest.raises(InputError, match=wrong):
        model.set_params(lambada=1)
    with pytest.raises(InputError, match=wrong):
        NodeClassifier(name, lambada=1).fit(X, LABELS, edge_index=EDGES)


@pytest.mark.parametrize("name", METHODS)
def test_a_prediction_can_be_explained(name) -> None:
    model = fitted(name)
    told = explain(model, 2)
    assert told.method == name
    assert told.node.predicted == model.predict()[2]
    assert {other.id for other in told.original} == {f"n{i}" for i in EDGES[1][EDGES[0] == 2]}
    assert (told.reconnected is not None) == bool(getattr(model.model_, "learns_graph", False))
    assert bool(told.evidence) == name.startswith("gcn-sl")
    assert told.contributions
    assert (told.alone is None) == (name in ("mlp", "nlgnn", "geom-gcn"))


PEOPLE = pd.DataFrame(
    {
        "id": [f"n{i}" for i in range(N)],
        "town": ["oslo", "rome", None, "bern"] * 22 + ["x", "y"],
        "age": [None, *range(1, N)],
        "born": pd.date_range("2000-01-01", periods=N),
        "label": NAMES[TRUTH],
    }
)
FRIENDS = pd.DataFrame(EDGES.T, columns=["source", "target"]).map("n{}".format)


def trained_on(nodes, *, run: int = 0) -> NodeClassifier:
    data = with_random_split(from_tables(nodes, FRIENDS), runs=2)
    return NodeClassifier("mlp", **SMALL, device="cpu").fit_graph(data, run=run)


@pytest.mark.parametrize("run", [0, 1])
def test_columns_are_encoded_as_the_training_nodes_teach_it(run) -> None:
    model = trained_on(PEOPLE, run=run)
    expected = ColumnEncoder.fit(from_tables(PEOPLE, FRIENDS).columns, model.train_mask_)
    assert model.encoder_.medians.tolist() == expected.medians.tolist()
    assert model.graph_.feature_names == expected.feature_names
    assert model.n_features_in_ == len(expected.feature_names)


def test_new_rows_are_encoded_as_in_training(tmp_path) -> None:
    model = trained_on(PEOPLE)
    model.save(tmp_path / "model")
    model = NodeClassifier.load(tmp_path / "model", device="cpu")
    new = PEOPLE.iloc[:2].assign(id=["ann", "bob"], town=["paris", None], born=None)
    grown = pd.concat([PEOPLE, new])
    read = [from_tables(grown, FRIENDS, encoder=model.encoder_), from_tables(grown, FRIENDS)]
    first, second = (model.predict_proba_graph(data) for data in read)
    assert (first == second).all(), "whether or not it is said how to read the table"
    assert first[:N] == pytest.approx(model.predict_proba(), abs=1e-6)
    with pytest.raises(InputError, match=r"read tables with from_tables\(\.\.\., encoder=classifier\.encoder_\)"):
        model.predict_proba_graph(from_tables(grown[["id"]].assign(age=range(len(grown))), FRIENDS))


def test_a_graph_without_features_is_learned_saved_and_grown(tmp_path) -> None:
    data = synthetic(n=150, h=0.9, classes=3, degree=8, features=3, seed=0)
    y = np.where(np.arange(150) < 100, data.y.numpy(), -1)
    classifier = NodeClassifier("gcn", epochs=60).fit(None, y, edge_index=data.edge_index)
    assert classifier.score(None, data.y, nodes=np.arange(100, 150)) > 0.6
    classifier.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(), classifier.predict_proba())
    edges = np.concatenate([data.edge_index.numpy(), [[150, 150], [0, 1]]], axis=1)
    assert len(loaded.predict(np.empty((151, 0)), edge_index=edges)) == 151
    places = {DEGREE, DEGREES, POSITION, LINKS}
    assert {each.name for each in explain(loaded, 0).contributions} == places


@pytest.mark.parametrize("with_masks", [True, False])
def test_any_data_of_pyg_can_be_fitted(with_masks) -> None:
    generator = torch.Generator().manual_seed(0)
    y, train = torch.tensor([1, 2] * 20), torch.arange(40) < 20
    edges = torch.randint(0, 40, (2, 90), generator=generator)
    data = Data(x=torch.randn(40, 5, generator=generator), edge_index=edges, y=y)
    if with_masks:
        data.train_mask, data.val_mask = train, ~train
    classifier = NodeClassifier("gcn", epochs=2).fit_graph(data)
    assert classifier.classes_.tolist() == [1, 2]
    assert set(classifier.predict().tolist()) <= {1, 2}
    assert int(classifier.train_mask_.sum()) == (20 if with_masks else 24), "else two fifths are for validation"
