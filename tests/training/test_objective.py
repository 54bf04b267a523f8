import pytest
import torch
from torch import nn

from gcnsl import InputError
from gcnsl.training import TrainingSettings, train
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


def test_values_are_those_of_the_formulas() -> None:
    objective = Objective(DATA.y, **MASKS, watch={"test": TEST}, device=torch.device("cpu"))
    logits = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    values = objective.read(objective.loss(logits, "train"), logits)
    masks = {"train": MASKS["train_mask"], "val": MASKS["val_mask"], "test": TEST}
    for name, mask in masks.items():
        hits = [int(logits[i].argmax() == DATA.y[i]) for i in mask.nonzero().flatten()]
        assert values[f"{name}_accuracy"] == pytest.approx(sum(hits) / len(hits))
    for name in ("train", "val"):
        losses = [-torch.log_softmax(logits[i], 0)[DATA.y[i]].item() for i in masks[name].nonzero().flatten()]
        assert values[f"{name}_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)
