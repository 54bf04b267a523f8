import pytest
import torch
from torch import nn

from gcnsl.errors import Interrupted
from gcnsl.training import METRICS, StageSettings, TrainingSettings, train
from gcnsl.training.loop import Passes
from gcnsl.training.objective import Objective
from gcnsl.training.state import RunState

from .cases import DATA, MASKS, TEST, TRAIN, VAL, net, send


def objective_of(settings, class_names=None) -> Objective:
    masks = {"train": TRAIN, "val": VAL, "test": TEST}
    return Objective(DATA.y, masks, settings=settings, class_names=class_names, device=torch.device("cpu"))


def values_of(objective: Objective, logits: torch.Tensor) -> dict[str, float]:
    return objective.named(objective.on_device(objective.loss(logits, "train"), logits), logits)


@pytest.mark.parametrize("metric", ["macro-f1", "roc-auc"])
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


def test_gradients_are_those_of_the_cross_entropy_and_of_what_the_model_adds() -> None:
    model, settings = net().eval(), TrainingSettings()
    model.train = lambda *_: model  # no dropout
    model.extra_loss = lambda x, *, y, nodes: 3 * sum(weight.sum() for weight in model.parameters())
    passes = Passes(RunState(model, settings), [DATA.x], objective_of(settings))
    loss = passes._differentiate()
    train = MASKS["train_mask"]
    expected = torch.nn.functional.cross_entropy(model(DATA.x)[train], DATA.y[train])
    assert not loss.requires_grad
    assert float(loss) == float(expected.detach())
    for weight, alone in zip(model.parameters(), torch.autograd.grad(expected, [*model.parameters()]), strict=True):
        torch.testing.assert_close(weight.grad, alone + 3)


class Staged(nn.Module):
    """Each stage has another certainty of the right class, by a script, and a state that grows."""

    def __init__(self, script) -> None:
        super().__init__()
        self.script, self.seen, self.grown = script, None, torch.zeros(0)
        self.register_buffer("certainty", torch.tensor(0.0))

    def get_extra_state(self):
        return self.grown

    def set_extra_state(self, state) -> None:
        self.grown = state

    def stages(self, inputs, y, weight):
        self.seen = y, weight
        for number, certainty in enumerate(self.script, start=1):
            if certainty is None:
                send()
            self.certainty.fill_(certainty or 0)
            self.grown = torch.zeros(number)
            yield

    def forward(self):
        return self.certainty * nn.functional.one_hot(DATA.y, 3).float()


def fit_staged(model, *, settings=StageSettings(), **options):  # noqa: B008 - it is frozen
    return train(model, [], DATA.y, **({"settings": settings, "seed": 0, **MASKS} | options))


@pytest.mark.parametrize("monitor", ["loss", "macro-f1"])  # between equal values of a metric, the loss decides
def test_the_model_has_its_best_stage(monitor) -> None:
    model, seen = Staged([1, 3, 2]), []
    settings = StageSettings(monitor=monitor)
    history = fit_staged(model, settings=settings, on_epoch=seen.append, watch={"test": TEST})
    assert (float(model.certainty), len(model.grown)) == (3, 2)
    assert (history.best_epoch, len(history), history.stopped) == (2, 3, "complete")
    assert history["val_loss"] == [epoch.val_loss for epoch in seen]
    assert seen[-1].accuracy == {"train": 1, "val": 1, "test": 1}
    assert history.seconds > 0
    assert not model.training


@pytest.mark.parametrize(
    ("script", "options", "epochs", "why"),
    [
        ([1, 2, 3, 4], {"settings": StageSettings(epochs=2)}, 2, "epochs"),
        ([4, 3, 2, 1], {"settings": StageSettings(patience=2)}, 3, "patience"),
        ([1, 2], {"settings": StageSettings(epochs=5, patience=5)}, 2, "complete"),
        ([1, 2, 3], {"minutes": 0}, 1, "minutes"),
    ],
)
def test_it_ends_as_training_does(script, options, epochs, why) -> None:
    history = fit_staged(Staged(script), **options)
    assert (len(history), history.stopped) == (epochs, why)


def test_only_labels_of_training_nodes_are_shown_with_their_weights() -> None:
    model = Staged([1])
    fit_staged(model, settings=StageSettings(class_weight={"1": 5}))
    y, weight = model.seen
    assert y.equal(torch.where(TRAIN, DATA.y, -1))
    assert weight[TRAIN].equal(torch.where(DATA.y == 1, 5.0, 1.0)[TRAIN])


def test_ctrl_c_ends_it_with_the_best_stage_so_far() -> None:
    model = Staged([2, 1, None, 3])
    with pytest.raises(Interrupted, match="after epoch 3") as stop:
        fit_staged(model)
    assert (float(model.certainty), stop.value.so_far.stopped) == (2, "interrupted")
