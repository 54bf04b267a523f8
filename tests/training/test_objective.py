import pytest
import torch
from torch import nn

from gcnsl import InputError
from gcnsl.training import METRICS, TrainingSettings, train
from gcnsl.training.objective import Objective

from .cases import DATA, MASKS, TEST, fit, net, same_weights


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


def test_values_are_those_of_the_formulas() -> None:
    objective = objective_of(TrainingSettings())
    logits = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    values = values_of(objective, logits)
    masks = {"train": MASKS["train_mask"], "val": MASKS["val_mask"], "test": TEST}
    for name, mask in masks.items():
        hits = [int(logits[i].argmax() == DATA.y[i]) for i in mask.nonzero().flatten()]
        assert values[f"{name}_accuracy"] == pytest.approx(sum(hits) / len(hits))
    for name in ("train", "val"):
        losses = [-torch.log_softmax(logits[i], 0)[DATA.y[i]].item() for i in masks[name].nonzero().flatten()]
        assert values[f"{name}_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)


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
