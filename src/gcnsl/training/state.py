"""The state of a run, and its checkpoint: one safetensors file, without pickles, to continue after a kill or Ctrl-C."""

import json
import math
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from gcnsl.checks import check_whole
from gcnsl.errors import InputError, TrainingDiverged, WriteError
from gcnsl.files import atomic_write, below, digest, remove_leftovers, tensor_bytes
from gcnsl.training.history import History
from gcnsl.training.metrics import METRICS
from gcnsl.training.settings import StageSettings, TrainingSettings

KIND = "gcnsl-checkpoint-2"
OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class RunState:
    """All that changes from one epoch to the next: weights, best weights, optimizer, history, torch's generators.

    It can be saved between any two epochs.

    Args:
        model: The model with its initial weights. If it has a method ``parameter_groups(weight_decay)``, the optimizer
            gets the returned groups; otherwise weight decay applies to all parameters.
        settings: Hyper-parameters of training; without those of an optimizer, there is none.
    """

    def __init__(self, model: nn.Module, settings: StageSettings) -> None:
        self.model, self.monitor = model, settings.monitor
        self.device = next(chain(model.parameters(), model.buffers())).device
        self.history = History()
        self.best = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self.optimizer: Any = None
        self.scheduler: ReduceLROnPlateau | None = None
        if not isinstance(settings, TrainingSettings):
            return
        groups = getattr(self.model, "parameter_groups", None)
        kind, decay = OPTIMIZERS[settings.optimizer], settings.weight_decay
        parameters = self.model.parameters() if groups is None else groups(decay)
        self.optimizer = kind(parameters, lr=settings.lr, weight_decay=decay, fused=True)  # type: ignore[call-arg]
        if settings.plateau_factor is not None:
            self.scheduler = ReduceLROnPlateau(
                self.optimizer,
                mode="max" if settings.monitor != "loss" and METRICS[settings.monitor].greater_is_better else "min",
                factor=settings.plateau_factor,
                patience=settings.plateau_patience,
                threshold=0.0,
            )

    def end_epoch(self, values: Mapping[str, float], began: float) -> None:
        """Add the values of an epoch to the history, and keep the weights if they are the best.

        ``began`` is the value of ``time.perf_counter`` when it began. Raises a :class:`TrainingDiverged` if a loss of
        gradient descent is NaN or infinite.
        """
        for name in ("train_loss", "val_loss"):
            if self.optimizer is not None and not math.isfinite(values[name]):
                lr = self.optimizer.param_groups[0]["lr"]
                raise TrainingDiverged(
                    f"training diverged: {name} is {values[name]} in epoch {len(self.history) + 1} with lr {lr:g}; "
                    f"use a smaller lr, such as {lr / 10:g}, or scale the features down"
                )
        if self.history.append(values, self.monitor):
            self.best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
        if self.scheduler is not None:
            self.scheduler.step(values[f"val_{self.monitor}"])
        self.history.seconds += time.perf_counter() - began

    def finish(self, why: str) -> History:
        """Give the model its best weights, free the memory of its gradients, and say why the run has ended."""
        self.model.load_state_dict(self.best)
        self.model.eval().zero_grad()
        self.history.stopped = why
        return self.history

    def saved(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors of the state by name, and the rest of it for JSON."""
        generators = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            generators["cuda"] = torch.cuda.get_rng_state(self.device)
        parts: dict[str, dict[str, Tensor]] = {"model": self.model.state_dict(), "best": self.best}
        parts |= {f"optimizer.{number}": values for number, values in self.optimizer.state_dict()["state"].items()}
        parts["generator"] = generators
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}, {
            "history": self.history.to_dict(),
            "lr": [group["lr"] for group in self.optimizer.param_groups],
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
        }

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Restore the state from what :meth:`saved` returned."""
        self.model.load_state_dict(below("model", tensors))
        self.best = {name: value.to(self.device) for name, value in below("best", tensors).items()}
        state: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for key, value in below("optimizer", tensors).items():
            number, name = key.split(".", 1)
            state[int(number)][name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        groups = [group | {"lr": lr} for group, lr in zip(groups, plain["lr"], strict=True)]
        self.optimizer.load_state_dict({"state": dict(state), "param_groups": groups})
        if self.scheduler is not None:
            self.scheduler.load_state_dict(plain["scheduler"])
        self.history = History.from_dict(plain["history"])
        torch.set_rng_state(tensors["generator.cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["generator.cuda"], self.device)


class CheckpointWarning(UserWarning):
    """A run could not be saved. It goes on, but would begin anew, or where it was last saved, if it were killed."""


@dataclass
class Checkpoint:
    """Where and how often to save a run.

    :func:`gcnsl.training.train` writes the file regularly, on Ctrl-C and at the end, and continues from it if there is
    one. It never removes it: do so when the trained model is saved. It refuses the file of another run: settings, seed,
    device, labels, masks and all shapes must be the same.

    Args:
        path: The file; each run needs its own.
        every: Number of epochs between two writes.
        identity: What else must be the same, by name, as values for JSON; for example hyper-parameters that change no
            shape, or a checksum of the data.
    """

    path: str | os.PathLike[str]
    every: int = 50
    identity: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_whole("every", self.every, least=1, why="it is a number of epochs")

    def save(self, state: RunState, run: Mapping[str, Any]) -> bool:
        """Write the state of the run that ``run`` describes, and return whether it was written.

        If it can't be, for example because the disk is full, there is a :class:`CheckpointWarning`: what was learnt so
        far is worth more than the file, and the next write may succeed. Models that are fitted in stages are not saved.
        """
        if state.optimizer is None:
            return False
        tensors, plain = state.saved()
        metadata = {"kind": KIND, "run": _json({**run, **self.identity}), "plain": _json(plain)}
        metadata["sha256"] = digest(tensors, metadata)
        try:
            atomic_write(self.path, tensor_bytes(tensors, metadata))
        except WriteError as error:
            warnings.warn(f"the run is not saved: {error}", CheckpointWarning, stacklevel=3)
            return False
        return True

    def restore(self, state: RunState, run: Mapping[str, Any]) -> None:
        """Restore the saved state; if there is no file, do nothing.

        A file that is damaged, is not a checkpoint or belongs to another run raises an InputError.
        """
        if not Path(self.path).exists():
            return
        try:
            with safe_open(self.path, framework="pt") as file:
                tensors, metadata = {name: file.get_tensor(name).clone() for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise self._refusal(f"can't be read ({error})") from error
        if metadata.get("kind") != KIND:
            raise self._refusal("is not a checkpoint that this version can continue")
        if metadata.pop("sha256", None) != digest(tensors, metadata):
            raise self._refusal("is damaged: its content is not what was written")
        saved, here = json.loads(metadata["run"]), json.loads(_json({**run, **self.identity}))
        for name in sorted({*saved, *here}):
            there, wanted = saved.get(name), here.get(name)
            if there != wanted:
                raise self._refusal(f"belongs to another run: {name} is {there!r} there and {wanted!r} here")
        state.restore(tensors, json.loads(metadata["plain"]))

    def remove(self) -> None:
        """Delete the file, if there is one, and what killed processes have left of it."""
        Path(self.path).unlink(missing_ok=True)
        remove_leftovers(Path(self.path))

    def _refusal(self, why: str) -> InputError:
        return InputError(f"checkpoint {self.path} {why}; delete it to start again, or give another path")


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, default=lambda number: number.item())  # NumPy's numbers
