"""A graph and models small enough to train in a blink."""

import os
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

from gcnsl import synthetic
from gcnsl.training import Checkpoint, History, TrainingSettings, seeded, train

DATA = synthetic(n=60, h=0.8, classes=3, degree=4, features=12, seed=0, signal=0.8)
TRAIN, VAL, TEST = (torch.arange(60) % 3 == part for part in range(3))
MASKS = {"train_mask": TRAIN, "val_mask": VAL}

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def send(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


class Net(nn.Module):
    """With everything a state can hold: dropout, buffers, parameters that do not decay."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(nn.functional.dropout(self.norm(self.first(x)).relu(), 0.5, self.training))

    def parameter_groups(self, weight_decay):
        biases = [parameter for parameter in self.parameters() if parameter.dim() == 1]
        weights = [parameter for parameter in self.parameters() if parameter.dim() > 1]
        return [{"params": weights, "weight_decay": weight_decay}, {"params": biases, "weight_decay": 0.0}]


def net() -> Net:
    with seeded(0):
        return Net()


def fit(model: nn.Module, **options) -> History:
    """Train on the features alone."""
    x = DATA.x.to(next(model.parameters()).device)
    settings = options.pop("settings", TrainingSettings(epochs=20))
    return train(model, [x], DATA.y, **({"settings": settings, "seed": 0, **MASKS} | options))


class StopError(Exception):
    """Ends a run from outside of it."""


def stop_at(number):
    def on_epoch(epoch) -> None:
        if epoch.number == number:
            raise StopError

    return on_epoch


def slow_run(path: Path | None, on_epoch=None) -> tuple[nn.Module, History]:
    """Train with a checkpoint every third epoch, slowly enough to be killed if ``on_epoch`` takes its time."""
    model, settings = net(), TrainingSettings(epochs=150, plateau_factor=0.5, plateau_patience=3)
    checkpoint = None if path is None else Checkpoint(path, every=3)
    return model, fit(model, settings=settings, on_epoch=on_epoch, checkpoint=checkpoint)


class Lookup(nn.Module):
    """Logits by hand: its only weight moves from epoch to epoch, so that each epoch's weights can be told apart."""

    def __init__(self, script) -> None:
        super().__init__()
        self.script, self.passes = script, 0
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self):
        self.passes += not self.training
        if self.training:
            return self.weight * torch.tensor([1.0, 0, 0]).expand(60, 3)
        return self.script[self.passes - 1] * nn.functional.one_hot(DATA.y, 3).float()


def follow(script, **settings) -> tuple[Lookup, History, list[float]]:
    """Train against the given certainties of the right class, and note the weight after each epoch."""
    model, weights = Lookup(script), []
    history = train(
        model,
        [],
        DATA.y,
        settings=TrainingSettings(**settings),
        seed=0,
        on_epoch=lambda _: weights.append(model.weight.item()),
        **MASKS,
    )
    return model, history, weights


def same_weights(a: nn.Module, b: nn.Module) -> bool:
    return all(x.equal(y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def tell(epoch) -> None:
    print(epoch.number, flush=True)
    time.sleep(0.02)


if __name__ == "__main__":
    torch.set_num_threads(1)
    slow_run(Path(sys.argv[1]), tell)
