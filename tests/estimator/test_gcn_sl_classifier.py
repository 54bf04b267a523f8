"""fit, predict, score; labels of any type; scikit-learn's conventions; GCN-SL's options by name."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import gcnsl
from gcnsl import GCNSLClassifier, InputError, NodeClassifier
from gcnsl.errors import Interrupted
from gcnsl.graph import GraphWarning
from gcnsl.methods import METHODS
from gcnsl.training import measure

from .cases import DATA, EDGES, HIDDEN, NAMES, TRUTH, N, X, Y, classifier, fitted, same_weights


def test_it_learns_from_some_labels_what_the_others_are() -> None:
    model = fitted(epochs=60)
    assert model.score(None, TRUTH, nodes=HIDDEN) > 0.8
    assert len(model.history_) == 60
    assert model.n_features_in_ == 20


def test_every_hyper_parameter_of_the_model_is_a_parameter_with_the_same_default() -> None:
    given = GCNSLClassifier().get_params()
    defaults = METHODS["gcn-sl-cc"].options()
    assert {name: given[name] for name in defaults} == defaults
    assert given.keys() - defaults.keys() == NodeClassifier().get_params().keys() - {"method"}


def test_it_is_the_node_classifier_of_gcn_sl() -> None:
    options = {name: getattr(classifier(), name) for name in METHODS["gcn-sl-cc"].options()}
    for merge, name in (("concat", "gcn-sl-cc"), ("average", "gcn-sl-av")):
        by_name = NodeClassifier(name, **(options | {"merge": merge}), device="cpu").fit(X, Y, edge_index=EDGES)
        assert same_weights(by_name, fitted(merge=merge))


def test_parameters_reach_the_model_and_the_training() -> None:
    model = fitted(rounds=3, epsilon=0.7, merge="average", epochs=4)
    config = model.model_.config
    assert (config.rounds, config.epsilon, config.merge) == (3, 0.7, "average")
    assert len(model.history_) == 4
    assert not same_weights(model, fitted(rounds=3, epsilon=0.7, merge="average", epochs=4, lr=0.1))


def test_scikit_learn_conventions() -> None:
    model = classifier(epsilon=0.7)
    assert is_classifier(model)
    assert clone(model).get_params() == model.get_params()
    assert clone(model).set_params(rounds=5).rounds == 5
    assert "epsilon=0.7" in repr(model)
    assert vars(model) == model.get_params(), "__init__ stores and does nothing else"
    with pytest.raises(NotFittedError):
        model.predict()
    assert model.fit(X, Y, edge_index=EDGES) is model
    assert same_weights(model, clone(model).fit(X, Y, edge_index=EDGES))


def test_kinds_of_arrays_do_not_matter() -> None:
    dense, sparse = fitted(), fitted(sp.csr_array(X))
    edges = torch.from_numpy(EDGES)
    assert same_weights(dense, classifier().fit(torch.from_numpy(X), torch.from_numpy(Y), edge_index=edges))
    assert same_weights(dense, fitted(X.astype(np.float64).tolist(), Y.tolist()))
    assert same_weights(sparse, fitted(torch.from_numpy(X).to_sparse_csr()))
    assert same_weights(sparse, fitted(sp.coo_matrix(X)))


LABELS = {
    "gaps": (np.where(HIDDEN, -1, TRUTH * 10 + 5), [5, 15, 25]),
    "floats": (np.where(HIDDEN, np.nan, TRUTH), [0, 1, 2]),
    "minus one as a float": (np.where(HIDDEN, -1.0, TRUTH), [0, 1, 2]),
    "torch": (torch.from_numpy(Y), [0, 1, 2]),
    "None among names": (np.where(HIDDEN, None, NAMES[TRUTH]), NAMES),
    "NaN among names": (np.where(HIDDEN, np.nan, NAMES[TRUTH].astype(object)), NAMES),
    "-1 among names": (np.where(HIDDEN, -1, NAMES[TRUTH].astype(object)), NAMES),
    "-1 as NumPy writes it": (np.where(HIDDEN, "-1", NAMES[TRUTH]), NAMES),
    "a list with -1": ([-1 if hidden else str(NAMES[c]) for hidden, c in zip(HIDDEN, TRUTH, strict=True)], NAMES),
    "a list with NaN": ([np.nan if hidden else str(NAMES[c]) for hidden, c in zip(HIDDEN, TRUTH, strict=True)], NAMES),
    "objects": (np.where(HIDDEN, None, TRUTH.astype(object)), [0, 1, 2]),
    "pandas": (pd.Series(NAMES[TRUTH]).mask(HIDDEN), NAMES),
    "nullable": (pd.Series(TRUTH).astype("Int64").mask(HIDDEN), [0, 1, 2]),
    "categories": (pd.Series(NAMES[TRUTH]).mask(HIDDEN).astype("category"), NAMES),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_come_back_in_that_kind(kind) -> None:
    y, classes = LABELS[kind]
    model = fitted(y=y, epochs=3)
    assert model.classes_.tolist() == list(classes)
    assert model.classes_.dtype.kind == np.asarray(classes).dtype.kind
    assert model.y_.tolist() == Y.tolist()
    assert same_weights(model, fitted(epochs=3))
    assert set(model.predict()) <= set(classes)
    right = model.predict()[~HIDDEN] == np.asarray(classes)[TRUTH[~HIDDEN]]
    assert model.score(None, y) == right.mean()


def test_two_classes_as_booleans() -> None:
    model = fitted(y=TRUTH == 0, epochs=2)
    assert model.classes_.tolist() == [False, True]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(N, -1), "y has no label among 90 entries"),
        ([None] * N, "y has no label"),
        (np.where(HIDDEN, -1, 4), "y has only one class"),
        (Y[:-1], r"y has shape \(89,\): give one label for each of the 90 nodes"),
        (Y[:, None], r"y has shape \(90, 1\): give one label for each node"),
        (np.arange(N) + 0.5, "90 different numbers among 90 labels, .* are a quantity"),
    ],
)
def test_bad_labels_are_refused(y, message) -> None:
    with pytest.raises(InputError, match=message):
        fitted(y=y)


def test_validation_nodes_are_drawn_from_each_class() -> None:
    model = fitted(validation_fraction=0.25, epochs=1)
    assert not (model.train_mask_ & model.val_mask_).any()
    assert ((model.train_mask_ | model.val_mask_) == ~HIDDEN).all()
    for c in range(3):
        labelled = (c == Y).sum()
        assert model.val_mask_[c == Y].sum() == round(0.25 * labelled)
    other = fitted(validation_fraction=0.25, epochs=1, random_state=1)
    assert (other.val_mask_ != model.val_mask_).any()


def test_every_class_keeps_a_training_node() -> None:
    y = np.full(N, -1)
    y[[0, 1, 2, 3, 4]] = [0, 0, 1, 1, 2]
    model = fitted(y=y, validation_fraction=0.9, epochs=1)
    assert sorted(y[model.train_mask_]) == [0, 1, 2]
    with pytest.raises(InputError, match=r"validation_fraction\(0.4\) of 3 labelled nodes leaves none for validation"):
        fitted(y=np.where(np.arange(N) < 3, np.arange(N), -1))


def test_validation_nodes_may_be_given() -> None:
    val_mask = ~HIDDEN & (np.arange(N) < 40)
    model = fitted(fit={"val_mask": val_mask}, epochs=1)
    assert (model.val_mask_ == val_mask).all()
    assert (model.train_mask_ == (~HIDDEN & ~val_mask)).all()


@pytest.mark.parametrize(
    ("val_mask", "message"),
    [
        (HIDDEN, r"val_mask\[2, 0\] selects a node without a label"),
        (np.zeros(N, dtype=bool), "val_mask selects no node"),
        (~HIDDEN, "train_mask selects no node"),
        (np.ones((N, 2), dtype=bool) & ~HIDDEN[:, None], r"val_mask has 2 columns: give those of one run"),
        (np.ones(5, dtype=bool), r"val_mask has shape \(5,\): give 90 rows"),
    ],
)
def test_bad_validation_nodes_are_refused(val_mask, message) -> None:
    with pytest.raises(InputError, match=message):
        fitted(fit={"val_mask": val_mask})


def test_a_class_that_only_validates_is_warned_of() -> None:
    with pytest.warns(GraphWarning, match="class 'cedar' has no training node"):
        fitted(y=np.where(HIDDEN, None, NAMES[TRUTH]), fit={"val_mask": Y == 2}, epochs=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validation_fraction": 1.0}, r"validation_fraction\(1.0\) must be > 0 and < 1"),
        ({"random_state": -1}, r"random_state\(-1\) must be from 0"),
        ({"random_state": "x"}, r"random_state\('x'\) must be a whole number"),
        ({"hidden_channels": 1.5}, r"hidden_channels\(1.5\) must be a whole number >= 1"),
        ({"n_anchors": 10**40}, r"n_anchors\(1000.*\) must be from 1 to"),
        ({"self_loops": "x"}, r"self_loops\('x'\) must be true or false"),
        ({"merge": "sum"}, r"merge\('sum'\) must be one of concat, average"),
        ({"epsilon": 2.0}, r"epsilon\(2.0\) must be >= 0 and <= 1"),
        ({"lr": -1.0}, r"lr\(-1.0\) must be > 0"),
        ({"device": "gpu"}, r"device\('gpu'\) must be auto, cpu, cuda"),
        ({"spectral_method": "pca"}, r"spectral_method\('pca'\) must be one of esc-anch, esc, sc"),
    ],
)
def test_bad_parameters_are_refused_in_fit(options, message) -> None:
    model = classifier(**options)
    with pytest.raises(InputError, match=message):
        model.fit(X, Y, edge_index=EDGES)
    assert not hasattr(model, "model_")


def test_a_seed_fixes_every_bit() -> None:
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 - the one that should not matter
    one = fitted(random_state=7)
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    assert same_weights(one, fitted(random_state=np.int64(7)))
    assert not same_weights(one, fitted(random_state=8))
    state = np.random.RandomState(0)
    assert not same_weights(fitted(random_state=state), fitted(random_state=state))
    assert fitted(random_state=None, epochs=1).predict().shape == (N,)


@pytest.mark.parametrize(
    "options",
    [
        {"spectral_method": "esc"},
        {"spectral_method": "sc"},
        {"n_components": 0},
        {"use_adjacency": False},
        {"use_reconnected": False},
        {"feature_norm": "row", "self_loops": False, "adjacency_norm": "row"},
    ],
)
def test_all_switches_work(options) -> None:
    assert fitted(epochs=40, **options).score(None, TRUTH) > 0.6


def test_probabilities_belong_to_the_predictions() -> None:
    model = fitted(y=np.where(HIDDEN, None, NAMES[TRUTH]))
    probabilities = model.predict_proba()
    assert probabilities.shape == (N, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    assert (NAMES[probabilities.argmax(1)] == model.predict()).all()


def test_score_counts_the_nodes_it_is_told_to() -> None:
    model = fitted()
    right = model.predict() == TRUTH
    assert model.score(None, TRUTH) == right.mean()
    assert model.score(None, Y) == right[~HIDDEN].mean()
    assert model.score(None, TRUTH, nodes=HIDDEN) == right[HIDDEN].mean()
    assert model.score(None, TRUTH, nodes=[3, 5, 80]) == right[[3, 5, 80]].mean()
    assert model.score(X, TRUTH, edge_index=EDGES) == right.mean()
    for nodes in ([90], [-1], np.ones(5, dtype=bool), ["a"]):
        with pytest.raises(InputError, match="nodes has shape"):
            model.score(None, TRUTH, nodes=nodes)
    with pytest.raises(InputError, match="y has 5 entries: give one label for each of the 90 nodes"):
        model.score(None, TRUTH[:5])
    with pytest.raises(InputError, match="y has no label among the nodes to be counted"):
        model.score(None, Y, nodes=HIDDEN)


def test_all_metrics_of_the_nodes_that_are_to_be_counted() -> None:
    model = fitted(epochs=20)
    found = model.evaluate(None, TRUTH, nodes=HIDDEN)
    assert found["accuracy"] == model.score(None, TRUTH, nodes=HIDDEN)
    probabilities = model.predict_proba()[HIDDEN]
    numbers = np.searchsorted(model.classes_, TRUTH[HIDDEN])
    assert found == measure(probabilities, numbers)
    assert model.evaluate(X, TRUTH, edge_index=EDGES) == model.evaluate(None, TRUTH)
    with pytest.raises(InputError, match="y holds 77, which is no class of the model"):
        model.evaluate(None, np.where(HIDDEN, 77, TRUTH))


def test_weights_of_classes_and_the_metric_that_chooses_reach_training() -> None:
    plain, weighted, chosen = fitted(epochs=20), fitted(epochs=20, class_weight="balanced"), fitted(monitor="roc-auc")
    assert plain.history_["train_loss"] != weighted.history_["train_loss"]
    values = chosen.history_["val_roc-auc"]
    assert chosen.history_.best["val_roc-auc"] == max(values)


def test_the_learned_graph_has_the_similarities_as_weights() -> None:
    model = fitted(epsilon=0.6)
    graph = model.learned_graph()
    z = model.model_.directions(model.fitted_.prepared.inputs[0]).detach()
    similarity = z @ z.T
    learned = torch.zeros(N, N)
    learned[graph.edge_index[0], graph.edge_index[1]] = graph.edge_weight
    assert torch.allclose(learned, torch.where(similarity >= 0.6, similarity, 0.0), atol=1e-6)
    assert graph.num_nodes == N
    with pytest.raises(InputError, match="gcn-sl-cc learns no graph"):
        fitted(use_reconnected=False, epochs=1).learned_graph()


def test_progress_is_told_and_an_unfinished_run_goes_on(tmp_path, monkeypatch) -> None:
    path, seen = tmp_path / "run.safetensors", []

    def stop(epoch) -> None:
        seen.append(epoch.number)
        if epoch.number == 12:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fitted(checkpoint=path, checkpoint_every=5, on_epoch=stop)
    with pytest.raises(InputError, match=r"belongs to another run: epsilon is 0\.9 there and 0\.7 here"):
        fitted(checkpoint=path, epsilon=0.7)
    with pytest.raises(InputError, match=r"belongs to another run: graph is '\w+' there"):
        fitted(X + 1, checkpoint=path)
    with monkeypatch.context() as patch:
        patch.setattr("gcnsl.estimator.node_classifier.__version__", "9.9")
        with pytest.raises(InputError, match=r"another run: gcnsl is '.*' there and '9\.9'"):
            fitted(checkpoint=path)
    resumed = fitted(checkpoint=path, on_epoch=lambda epoch: seen.append(epoch.number))
    assert seen == [*range(1, 13), *range(11, 26)]
    assert same_weights(resumed, fitted())
    assert path.exists(), "the model is not in a safe place yet"
    resumed.save(tmp_path / "model")
    assert not path.exists()


def test_after_an_interruption_it_is_fitted_with_the_best_epoch_so_far(tmp_path) -> None:
    def press(epoch) -> None:
        if epoch.number == 7:
            raise KeyboardInterrupt

    model = classifier(checkpoint=tmp_path / "run", on_epoch=press)
    with pytest.raises(Interrupted):
        model.fit(X, Y, edge_index=EDGES)
    assert (len(model.history_), model.history_.stopped) == (7, "interrupted")
    assert model.predict().shape == (N,)
    model.save(tmp_path / "model")
    assert (tmp_path / "run").exists(), "the run goes on from there"
    assert same_weights(GCNSLClassifier.load(tmp_path / "model"), model)


def test_its_time_can_be_limited() -> None:
    assert fitted(minutes=1e-6).history_.stopped == "minutes"
    with pytest.raises(InputError, match=r"minutes\(0\) must be > 0"):
        fitted(minutes=0)


def test_it_is_a_public_name() -> None:
    assert gcnsl.GCNSLClassifier is GCNSLClassifier


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu() -> None:
    model = fitted(device="cuda", epochs=60)
    assert model.score(None, TRUTH, nodes=HIDDEN) > 0.8
    assert next(model.model_.parameters()).is_cuda
    assert model.learned_graph().edge_index.device.type == "cpu"
    assert DATA.x.device.type == "cpu"
