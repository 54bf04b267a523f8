"""GCN-SL on disk; test_node_classifier.py has what holds for all methods."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.exceptions import NotFittedError

from gcnsl import GCNSLClassifier, InputError, from_tables
from gcnsl.datasets import with_random_split
from gcnsl.selection import ChosenBy
from gcnsl.selection.leaderboard import COLUMNS, NUMBERS
from gcnsl.storage import load_folder, save_folder

from .cases import EDGES, HIDDEN, NAMES, TRUTH, N, X, classifier, fitted, same_weights

GROWN = np.vstack([X, X[::9] + 1])


def loaded(model, path) -> GCNSLClassifier:
    model.save(path / "model")
    return GCNSLClassifier.load(path / "model", device="cpu")


@pytest.mark.parametrize("method", ["esc-anch", "esc", "sc", None])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_predictions_after_a_round_trip_are_the_same_bits(tmp_path, method, layout) -> None:
    options = {"n_components": 0} if method is None else {"spectral_method": method}
    model = fitted(layout(X), epochs=5, **options)
    again = loaded(model, tmp_path)
    assert (again.predict_proba() == model.predict_proba()).all()
    grown = [some.predict_proba(layout(GROWN), edge_index=EDGES) for some in (model, again)]
    assert (grown[0] == grown[1]).all()
    assert again.graph_.x.layout == model.graph_.x.layout
    assert again.learned_graph().edge_index.equal(model.learned_graph().edge_index)


def test_everything_fitted_comes_back(tmp_path) -> None:
    ids = [f"node {i}" for i in range(N)]
    y = np.where(HIDDEN, None, NAMES[TRUTH])
    model = fitted(y=y, epochs=5, rounds=np.int64(3), random_state=np.random.RandomState(3), fit={"node_ids": ids})
    again = loaded(model, tmp_path)
    assert again.classes_.tolist() == NAMES.tolist()
    assert again.node_ids_.tolist() == ids
    assert again.history_ == model.history_
    assert again.n_features_in_ == 20
    for name in ("y_", "train_mask_", "val_mask_"):
        assert (getattr(again, name) == getattr(model, name)).all()
    given, kept = model.get_params(), again.get_params()
    assert {name for name in given if given[name] != kept[name]} == {"random_state"}
    assert kept["random_state"] == model.fitted_.prepared.seed
    assert again.score(None, y) == model.score(None, y)
    assert same_weights(classifier(**kept).fit(X, y, edge_index=EDGES), model), "it can be fitted again"


def test_ids_and_classes_keep_their_type(tmp_path) -> None:
    model = loaded(fitted(epochs=1, fit={"node_ids": np.arange(N) * 7}), tmp_path)
    assert model.node_ids_.tolist() == (np.arange(N) * 7).tolist()
    assert model.classes_.dtype.kind == "i"
    assert loaded(fitted(y=TRUTH == 1, epochs=1), tmp_path).classes_.dtype.kind == "b"
    assert model.node_ids_.dtype.kind == "i"
    assert loaded(fitted(epochs=1), tmp_path).node_ids_ is None


def test_what_belongs_to_the_place_of_training_is_not_saved(tmp_path) -> None:
    model = fitted(epochs=1, checkpoint=tmp_path / "run.safetensors", on_epoch=lambda epoch: None)
    again = loaded(model, tmp_path)
    assert again.checkpoint is None
    assert again.on_epoch is None
    assert str(tmp_path) not in (tmp_path / "model" / "config.json").read_text()


def test_saving_needs_a_fitted_classifier_and_a_place(tmp_path) -> None:
    with pytest.raises(NotFittedError):
        classifier().save(tmp_path / "model")
    model = fitted(epochs=1)
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="model exists"):
        model.save(tmp_path / "model", overwrite=False)
    with pytest.raises(InputError, match="nothing is not a folder"):
        GCNSLClassifier.load(tmp_path / "nothing")


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    edges = {"edge_weight": np.ones(EDGES.shape[1]), "directed": True}
    fitted(sp.csr_array(X), epochs=1, fit=edges).save(path / "model")
    return load_folder(path / "model")


def forge_tensors(**changes):
    def forge(config, tensors) -> None:
        for name, value in changes.items():
            key = name.replace("__", ".")
            tensors[key] = value(tensors[key])

    return forge


CHOSEN_BY = ChosenBy("accuracy", 9, 20, 9, False)._asdict()
ROW = {name: 0.5 if name in NUMBERS else {} if name == "options" else "mlp" for name in COLUMNS}


def test_the_same_without_forgery_is_read(tmp_path, content) -> None:
    save_folder(tmp_path / "model", content[0] | {"leaderboard": [ROW], "chosen_by": CHOSEN_BY}, content[1])
    assert GCNSLClassifier.load(tmp_path / "model").chosen_by_._asdict() == CHOSEN_BY


FORGERIES = {
    "columns": forge_tensors(x__column=lambda t: t + 10**6),
    "starts": forge_tensors(x__start=lambda t: t * 3),
    "edges": forge_tensors(edge_index=lambda t: t + N),
    "arcs": forge_tensors(arc_index=lambda t: t + N),
    "no arcs": lambda config, tensors: tensors.pop("arc_index"),
    "weights of edges": forge_tensors(edge_weight=lambda t: t[1:]),
    "weights of arcs": forge_tensors(arc_weight=lambda t: t - 1),
    "anchors": forge_tensors(precomputed__anchors=lambda t: t + N),
    "labels": forge_tensors(y=lambda t: t[1:]),
    "weights": forge_tensors(model__gate=lambda t: t[1:]),
    "weights that are not numbers": forge_tensors(model__gate=lambda t: t * float("nan")),
    "types of features": forge_tensors(x__value=lambda t: t.double()),
    "infinite features": forge_tensors(x__value=lambda t: t / 0),
    "unknown classes": forge_tensors(y=lambda t: t + 7),
    "types of labels": forge_tensors(y=lambda t: t.float()),
    "types of masks": forge_tensors(train_mask=lambda t: t.long()),
    "masks without nodes": forge_tensors(train_mask=lambda t: t & False),
    "masks of all nodes": forge_tensors(train_mask=lambda t: t | True),
    "labels of masks": forge_tensors(y=lambda t: t * 0 - 1),
    "number of classes": lambda config, tensors: config.update(classes=7),
    "no weights": lambda config, tensors: tensors.pop("model.gate"),
    "no parameter": lambda config, tensors: config.pop("parameters"),
    "no method": lambda config, tensors: config.pop("method"),
    "unknown method": lambda config, tensors: config.update(method="gcm"),
    "unknown option": lambda config, tensors: config["options"].update(lambada=1),
    "unknown parameter": lambda config, tensors: config["parameters"].update(lambada=1),
    "bad parameter": lambda config, tensors: config["options"].update(epsilon=7),
    "bad shape": lambda config, tensors: config.update(shape="wide"),
    "bad history": lambda config, tensors: config["history"].update(mood="good"),
    "history of other epochs": lambda config, tensors: config["history"]["values"].update(val_loss=[1.0, 2.0, 3.0]),
    "history in words": lambda config, tensors: config["history"]["values"].update(val_loss=["low"]),
    "best epoch": lambda config, tensors: config["history"].update(best_epoch=2),
    "reason to stop": lambda config, tensors: config["history"].update(stopped=["epochs"]),
    "a class that is a list": lambda config, tensors: config["classes"].__setitem__(1, [1]),
    "a class without a name": lambda config, tensors: config["classes"].__setitem__(1, None),
    "one class twice": lambda config, tensors: config["classes"].__setitem__(1, config["classes"][0]),
    "names of features": lambda config, tensors: config.update(feature_names=["age"]),
    "types of names": lambda config, tensors: config.update(feature_names=[None] * 20),
    "name of a column": lambda config, tensors: config.update(weight_column=["weight"]),
    "leaderboard": lambda config, tensors: config.update(leaderboard=[{"model": "mlp"}], chosen_by=CHOSEN_BY),
    "metric": lambda config, tensors: config.update(leaderboard=[ROW], chosen_by=CHOSEN_BY | {"metric": "mood"}),
    "number of nodes": lambda config, tensors: config.update(leaderboard=[ROW], chosen_by=CHOSEN_BY | {"nodes": "9"}),
    "no number of nodes": lambda config, tensors: config.update(leaderboard=[ROW], chosen_by={"metric": "accuracy"}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_folder_is_refused_even_where_its_sums_are_right(tmp_path, content, forgery) -> None:
    config, tensors = json.loads(json.dumps(content[0])), {name: t.clone() for name, t in content[1].items()}
    FORGERIES[forgery](config, tensors)
    save_folder(tmp_path / "model", config, tensors)
    with pytest.raises(InputError, match=rf"{tmp_path}/model holds no classifier that this version understands"):
        GCNSLClassifier.load(tmp_path / "model")


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    """A model whose features are the columns of a table."""
    nodes = pd.DataFrame({"id": range(N), "kind": NAMES[np.arange(N) % 3], "age": X[:, 0], "label": TRUTH})
    data = with_random_split(from_tables(nodes, pd.DataFrame(EDGES.T, columns=["source", "target"])))
    path = tmp_path_factory.mktemp("encoded") / "model"
    classifier(epochs=1).fit_graph(data).save(path)
    return load_folder(path)


@pytest.mark.parametrize(
    "forgery",
    [
        lambda config, tensors: config.pop("encoder"),
        lambda config, tensors: config["encoder"]["levels"]["kind"]["texts"].append("yew"),
        lambda config, tensors: config["encoder"]["levels"]["kind"]["texts"].__setitem__(0, [1]),
        lambda config, tensors: config["encoder"]["levels"]["kind"].update(rare=None),
        lambda config, tensors: config["encoder"]["kinds"].update(age="colour"),
        forge_tensors(encoder__medians=lambda t: t[:0]),
    ],
)
def test_a_forged_encoder_is_refused(tmp_path, encoded, forgery) -> None:
    config, tensors = json.loads(json.dumps(encoded[0])), dict(encoded[1])
    save_folder(tmp_path / "model", config, tensors)
    assert GCNSLClassifier.load(tmp_path / "model").encoder_.feature_names[0] == "age"
    forgery(config, tensors)
    save_folder(tmp_path / "model", config, tensors)
    with pytest.raises(InputError, match="holds no classifier that this version understands"):
        GCNSLClassifier.load(tmp_path / "model")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_model_trained_on_a_gpu_works_on_a_cpu(tmp_path) -> None:
    model = fitted(device="cuda")
    assert loaded(model, tmp_path).predict_proba() == pytest.approx(model.predict_proba(), abs=1e-4)
