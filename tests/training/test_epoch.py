import gc
import os
import signal
import weakref

import pytest
import torch
from torch import nn

from gcnsl import InputError
from gcnsl.errors import Interrupted
from gcnsl.training import METRICS, StageSettings, TrainingSettings, epoch, predict_logits, train
from gcnsl.training.epoch import Objective, Passes
from gcnsl.training.state import RunState

from .cases import DATA, MASKS, TEST, TRAIN, fit, net, same_weights


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_mask": torch.zeros(60, dtype=torch.bool)}, "train_mask selects no node"),
        (
            {"val_mask": torch.ones(60)},
            r"val_mask has shape \(60,\) and dtype torch.float32: give one boolean per node",
        ),
        (
            {"val_mask": torch.ones(60, 10, dtype=torch.bool)},
            r"shape \(60, 10\) .* give a single column, mask\[:, run\]",
        ),
        ({"watch": {"test": torch.zeros(60, dtype=torch.bool)}}, "test_mask selects no node"),
        ({"watch": {"val": TEST}}, "watch has a mask named 'val', which is the name of another mask: rename it"),
    ],
)
def test_bad_masks_are_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        fit(net(), **options)


def test_an_unlabelled_node_in_a_mask_is_refused_and_elsewhere_ignored() -> None:
    y = DATA.y.clone()
    y[TEST] = -1
    plain, without = net(), net()
    fit(plain)
    train(without, [DATA.x], y, settings=TrainingSettings(epochs=20), seed=0, **MASKS)
    assert same_weights(plain, without)
    y[4] = -1
    with pytest.raises(InputError, match=r"val_mask\[4\] selects a node without a label"):
        train(net(), [DATA.x], y, settings=TrainingSettings(), seed=0, **MASKS)


def test_a_model_for_another_graph_is_refused() -> None:
    with pytest.raises(InputError, match=r"logits of shape \(60, 2\), but y has 60 nodes and labels up to 2"):
        fit(nn.Linear(12, 2))
    with pytest.raises(InputError, match=r"logits of shape \(50, 3\)"):
        train(nn.Linear(12, 3), [DATA.x[:50]], DATA.y, settings=TrainingSettings(), seed=0, **MASKS)


def objective_of(settings, y=DATA.y, masks=MASKS, class_names=None) -> Objective:
    cpu = torch.device("cpu")
    return Objective(y, **masks, watch={"test": TEST}, settings=settings, class_names=class_names, device=cpu)


def values_of(objective: Objective, logits: torch.Tensor) -> dict[str, float]:
    return objective.named(objective.on_device(objective.loss(logits, "train"), logits), logits)


@pytest.mark.parametrize("metric", [name for name in METRICS if name != "accuracy"])
def test_the_metric_that_chooses_is_read_on_validation_nodes(metric) -> None:
    objective, logits = objective_of(TrainingSettings(monitor=metric)), torch.randn(60, 3)
    values = values_of(objective, logits)
    val = MASKS["val_mask"]
    expected = METRICS[metric](logits.softmax(1)[val].numpy(), DATA.y[val].numpy())
    assert values.pop(f"val_{metric}") == pytest.approx(expected, rel=1e-5)
    assert values == values_of(objective_of(TrainingSettings()), logits)


@pytest.mark.parametrize("mask", ["train", "val"])
def test_the_weighted_loss_is_that_of_repeated_nodes(mask) -> None:
    logits = torch.randn(60, 4)
    weighted = objective_of(TrainingSettings(class_weight={"a": 3, "c": 2}), class_names=["a", "b", "c", "d"])
    nodes = [i for i in MASKS[f"{mask}_mask"].nonzero().flatten().tolist() for _ in range((3, 1, 2)[DATA.y[i]])]
    expected = nn.functional.cross_entropy(logits[nodes], DATA.y[nodes])
    assert weighted.loss(logits, mask).item() == pytest.approx(expected.item(), rel=1e-5)


def test_classes_have_numbers_as_names_unless_told_and_a_model_may_know_more_of_them() -> None:
    logits = torch.randn(60, 5)
    numbered, named = (
        objective_of(TrainingSettings(class_weight={name: 4}), class_names=names)
        for name, names in (("1", None), ("b", ["a", "b", "c", "d", "e"]))
    )
    assert numbered.loss(logits, "train") == named.loss(logits, "train")
    assert numbered.loss(logits, "train") != objective_of(TrainingSettings()).loss(logits, "train")


def test_predict_logits_neither_drops_nor_changes_the_mode() -> None:
    model = net().train()
    logits = predict_logits(model, [DATA.x])
    assert model.training
    assert not logits.requires_grad
    assert logits.equal(model.eval()(DATA.x).detach())


def test_gradients_are_those_of_the_cross_entropy_and_of_what_the_model_adds() -> None:
    model, settings = net().eval(), TrainingSettings()
    model.train = lambda *_: model  # no dropout
    model.extra_loss = lambda x, *, y, nodes: 3 * sum(weight.sum() for weight in model.parameters())
    passes = Passes(RunState(model, settings), [DATA.x], objective_of(settings))
    assert passes.begin()
    loss = passes._loss
    train = MASKS["train_mask"]
    expected = torch.nn.functional.cross_entropy(model(DATA.x)[train], DATA.y[train])
    assert not loss.requires_grad
    assert float(loss) == float(expected.detach())
    for weight, alone in zip(model.parameters(), torch.autograd.grad(expected, [*model.parameters()]), strict=True):
        torch.testing.assert_close(weight.grad, alone + 3)


class Staged(nn.Module):
    """Each stage has another certainty of the right class, by a script."""

    def __init__(self, script) -> None:
        super().__init__()
        self.script, self.seen = script, None
        self.register_buffer("certainty", torch.tensor(0.0))

    def stages(self, inputs, y, weight):
        self.seen = y, weight
        for certainty in self.script:
            self.certainty.fill_(certainty)
            yield

    def forward(self):
        return self.certainty * nn.functional.one_hot(DATA.y, 3).float()


def fit_staged(model, *, settings=StageSettings(), **options):  # noqa: B008 - it is frozen
    return train(model, [], DATA.y, **({"settings": settings, "seed": 0, **MASKS} | options))


def test_the_model_has_its_best_stage() -> None:
    model, seen = Staged([1, 3, 2]), []
    history = fit_staged(model, on_epoch=seen.append, watch={"test": TEST})
    assert float(model.certainty) == 3
    assert (history.best_epoch, len(history), history.stopped) == (2, 3, "complete")
    assert history["val_loss"] == [epoch.val_loss for epoch in seen]
    assert seen[-1].accuracy == {"train": 1, "val": 1, "test": 1}
    assert history.seconds > 0
    assert not model.training


@pytest.mark.parametrize(
    ("script", "settings", "epochs", "why"),
    [
        ([1, 2, 3, 4], {"epochs": 2}, 2, "epochs"),
        ([4, 3, 2, 1], {"patience": 2}, 3, "patience"),
        ([1, 2], {"epochs": 5, "patience": 5}, 2, "complete"),
    ],
)
def test_it_ends_as_training_does(script, settings, epochs, why) -> None:
    history = fit_staged(Staged(script), settings=StageSettings(**settings))
    assert (len(history), history.stopped) == (epochs, why)


def test_one_stage_always_fits_into_the_time() -> None:
    history = fit_staged(Staged([1, 2, 3]), minutes=0)
    assert (len(history), history.stopped) == (1, "minutes")


def test_only_labels_of_training_nodes_are_shown_with_their_weights() -> None:
    model = Staged([1])
    fit_staged(model, settings=StageSettings(class_weight={"1": 5}))
    y, weight = model.seen
    assert y.equal(torch.where(TRAIN, DATA.y, -1))
    assert weight[TRAIN].equal(torch.where(DATA.y == 1, 5.0, 1.0)[TRAIN])


def test_a_metric_chooses_the_stage_and_the_loss_decides_between_equal_ones() -> None:
    history = fit_staged(Staged([1, 3, 2]), settings=StageSettings(monitor="macro-f1"))
    assert history["val_macro-f1"] == [1, 1, 1]
    assert history.best_epoch == 2


@pytest.mark.parametrize(("script", "kept"), [([2, 1, None], 2), ([None], None)])
def test_ctrl_c_ends_it_with_the_best_stage_so_far(script, kept) -> None:
    class Interrupting(Staged):
        def stages(self, inputs, y, weight):
            for certainty in self.script:
                if certainty is None:
                    os.kill(os.getpid(), signal.SIGINT)
                self.certainty.fill_(certainty or 0)
                yield

    model = Interrupting(script)
    with pytest.raises(Interrupted, match="in the first epoch" if kept is None else "after epoch 2") as stop:
        fit_staged(model)
    if kept is None:
        assert stop.value.so_far is None
    else:
        assert float(model.certainty) == kept
        assert stop.value.so_far.stopped == "interrupted"


def test_garbage_of_the_first_epoch_is_collected_in_large_graphs(monkeypatch) -> None:
    monkeypatch.setattr(epoch, "LARGE_GRAPH", len(DATA.y) - 1)
    model = net()
    left_behind: list[weakref.ref[torch.Tensor]] = []

    def leave(_module, _inputs, logits) -> None:
        cycle = [logits.detach()]
        cycle.append(cycle)
        left_behind.append(weakref.ref(cycle[0]))

    model.register_forward_hook(leave)
    alive: list[bool] = []
    gc.disable()
    try:
        fit(model, on_epoch=lambda _: alive.append(left_behind[0]() is not None))
    finally:
        gc.enable()
    assert not alive[0]
