"""fit, predict, score; labels of any type; scikit-learn's conventions; GCN-SL's options by name."""

import numpy as np
import pytest
import torch

from gcnsl import GCNSLClassifier, InputError, NodeClassifier
from gcnsl.methods import METHODS

from .cases import EDGES, HIDDEN, TRUTH, N, X, Y, classifier, fitted, same_weights


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


def test_validation_nodes_are_drawn_from_each_class() -> None:
    model = fitted(validation_fraction=0.25, epochs=1)
    assert not (model.train_mask_ & model.val_mask_).any()
    assert ((model.train_mask_ | model.val_mask_) == ~HIDDEN).all()
    for c in range(3):
        labelled = (c == Y).sum()
        assert model.val_mask_[c == Y].sum() == round(0.25 * labelled)
    other = fitted(validation_fraction=0.25, epochs=1, random_state=1)
    assert (other.val_mask_ != model.val_mask_).any()


@pytest.mark.parametrize(
    ("val_mask", "message"),
    [
        (HIDDEN, r"val_mask\[2\] selects a node without a label"),
        (np.zeros(N, dtype=bool), "val_mask selects no node"),
        (~HIDDEN, "train_mask selects no node"),
        (np.ones((N, 2), dtype=bool) & ~HIDDEN[:, None], r"val_mask has 2 columns: give those of one run"),
        (np.ones(5, dtype=bool), r"val_mask has shape \(5,\): give 90 rows"),
    ],
)
def test_bad_validation_nodes_are_refused(val_mask, message) -> None:
    with pytest.raises(InputError, match=message):
        fitted(fit={"val_mask": val_mask})


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_trained_on_a_gpu_it_works_on_a_cpu(tmp_path) -> None:
    model = fitted(device="cuda", epochs=60)
    assert model.score(None, TRUTH, nodes=HIDDEN) > 0.8
    assert next(model.model_.parameters()).is_cuda
    assert model.learned_graph().edge_index.device.type == "cpu"
    model.save(tmp_path / "model")
    loaded = GCNSLClassifier.load(tmp_path / "model", device="cpu")
    assert loaded.predict_proba() == pytest.approx(model.predict_proba(), abs=1e-4)
