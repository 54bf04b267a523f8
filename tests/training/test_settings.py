"""Settings and devices."""

import numpy as np
import pytest
import torch

from gcnsl import InputError
from gcnsl.training import Checkpoint, TrainingSettings, choose_device


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, r"lr\(0.0\) must be a number > 0"),
        ({"lr": float("nan")}, r"lr\(nan\) must be a number > 0"),
        ({"lr": "fast"}, r"lr\('fast'\) must be a number > 0"),
        ({"weight_decay": -1.0}, r"weight_decay\(-1.0\) must be a number >= 0"),
        ({"epochs": 0}, r"epochs\(0\) must be a whole number >= 1"),
        ({"patience": 2.5}, r"patience\(2.5\) must be a whole number >= 1"),
        ({"plateau_patience": True}, r"plateau_patience\(True\) must be a whole number >= 1"),
        ({"monitor": "f1"}, r"monitor\('f1'\) must be one of loss, accuracy"),
        ({"optimizer": "lion"}, r"optimizer\('lion'\) must be one of adam, sgd"),
        ({"plateau_factor": 1.0}, r"plateau_factor\(1.0\) must be between 0 and 1, or None"),
    ],
)
def test_bad_settings_are_named_with_value_and_bound(options, message) -> None:
    with pytest.raises(InputError, match=message):
        TrainingSettings(**options)


def test_numbers_of_numpy_will_do() -> None:
    assert TrainingSettings(epochs=np.int64(3), lr=np.float32(0.5)).epochs == 3


def test_a_checkpoint_needs_epochs_between_writes() -> None:
    with pytest.raises(InputError, match=r"every\(0\) must be >= 1"):
        Checkpoint("run.safetensors", every=0)


def test_devices() -> None:
    assert choose_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device("cpu") == choose_device(torch.device("cpu")) == torch.device("cpu")
    for unknown in ("gpu", "mps", "cpu:x"):
        with pytest.raises(InputError, match=rf"device\('{unknown}'\) must be auto, cpu, cuda or cuda:N"):
            choose_device(unknown)


def test_a_missing_device_is_named(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device\('cuda'\): torch finds no CUDA device here; use 'auto' or 'cpu'"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda:1").index == 1
    with pytest.raises(InputError, match="there are 2 CUDA devices; use one of cuda:0 to cuda:1"):
        choose_device("cuda:2")
