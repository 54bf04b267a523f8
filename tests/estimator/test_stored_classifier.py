"""GCN-SL on disk; test_node_classifier.py has what holds for all methods."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from gcnsl import GCNSLClassifier, InputError
from gcnsl.storage import load_folder, save_folder

from .cases import EDGES, HIDDEN, NAMES, TRUTH, N, X, classifier, fitted, same_weights

GROWN = np.vstack([X, X[::9] + 1])


def loaded(model, path) -> GCNSLClassifier:
    model.save(path / "model")
    return GCNSLClassifier.load(path / "model", device="cpu")


@pytest.mark.parametrize(
    ("method", "layout"), [("esc-anch", sp.csr_array), ("esc", np.asarray), ("sc", np.asarray), (None, sp.csr_array)]
)
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
    assert (model.node_ids_.dtype.kind, model.classes_.dtype.kind) == ("i", "i")
    assert loaded(fitted(y=TRUTH == 1, epochs=1), tmp_path).classes_.dtype.kind == "b"
    numbers, x = np.arange(600) % 60, np.eye(60)[np.arange(600) % 60]
    many = classifier(epochs=1).fit(x, numbers, edge_index=np.stack([np.arange(600), (np.arange(600) + 1) % 600]))
    assert loaded(many, tmp_path).classes_.tolist() == list(range(60)), "so many different numbers can be classes"


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


FORGERIES = {
    "edges": forge_tensors(edge_index=lambda t: t + N),
    "arcs": forge_tensors(arc_index=lambda t: t + N),
    "anchors": forge_tensors(precomputed__anchors=lambda t: t + N),
    "weights": forge_tensors(model__gate=lambda t: t[1:]),
    "infinite features": forge_tensors(x__value=lambda t: t / 0),
    "number of classes": lambda config, tensors: config.update(classes=7),
    "unknown classes": forge_tensors(y=lambda t: t + 7),
    "masks of numbers": forge_tensors(test_mask=lambda t: t.double()),
    "unknown parameter": lambda config, tensors: config["parameters"].update(lambada=1),
    "bad history": lambda config, tensors: config["history"].update(mood="good"),
    "best epoch": lambda config, tensors: config["history"].update(best_epoch=2),
    "a class that is a list": lambda config, tensors: config["classes"].__setitem__(1, [1]),
    "no number of nodes": lambda config, tensors: config.update(leaderboard=[{}], chosen_by={"metric": "accuracy"}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_folder_is_refused_even_where_its_sums_are_right(tmp_path, content, forgery) -> None:
    config, tensors = json.loads(json.dumps(content[0])), {name: t.clone() for name, t in content[1].items()}
    FORGERIES[forgery](config, tensors)
    save_folder(tmp_path / "model", config, tensors)
    with pytest.raises(InputError, match=rf"{tmp_path}/model holds no classifier that this version understands"):
        GCNSLClassifier.load(tmp_path / "model")
