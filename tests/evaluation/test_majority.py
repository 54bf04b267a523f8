import pytest
import torch

from gcnsl.evaluation.majority import measure_majority


def test_it_guesses_what_is_most_frequent_in_training() -> None:
    y = torch.tensor([0, 1, 1, 1, 2, 0, 0, 0, 1, -1])
    train = torch.tensor([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=torch.bool)
    test = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 0], dtype=torch.bool)
    found = measure_majority(y, 3, {"train": train, "test": test})
    assert found["accuracy"] == 1 / 4
    assert found["roc-auc"] == 1 / 2
    assert found["balanced-accuracy"] == 1 / 2
    assert found["calibration-error"] == pytest.approx(1 / 2)
