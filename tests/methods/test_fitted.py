import pytest
import torch

from gcnsl import InputError
from gcnsl.graph import split_masks
from gcnsl.training import measure

from .cases import easy_graph, fitted, prepared

QUICK = {"epochs": 6}


def test_a_fit_learns_from_its_split() -> None:
    data = easy_graph()
    ready = prepared("gcn-sl-cc", QUICK, data)
    first, other = (fitted(ready, run=run) for run in (0, 1))
    assert first.history.values != other.history.values
    assert set(first.history.values) == {"train_loss", "val_loss", "train_accuracy", "val_accuracy"}
    masks = split_masks(data, 0)
    accuracy = first.accuracy(masks)
    right = first.logits().argmax(dim=1) == data.y
    for name, mask in masks.items():
        assert accuracy[name] == pytest.approx(float(right[mask].float().mean()))
    assert accuracy["val"] == pytest.approx(first.history.best["val_accuracy"])
    test = masks["test"]
    assert first.measure(test) == measure(first.logits().softmax(dim=1)[test].numpy(), data.y[test].numpy())


def test_logits_that_make_no_probabilities_are_refused() -> None:
    result = fitted(prepared("mlp", QUICK, easy_graph()))
    with torch.no_grad():
        for weight in result.model.parameters():
            weight.fill_(1e38)
    with pytest.raises(InputError, match=r"predicts values that are not finite: .* train it again"):
        result.logits()
