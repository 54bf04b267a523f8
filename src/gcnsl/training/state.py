"""The state of a run: everything that changes from one epoch to the next, and that it needs to continue."""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from gcnsl.training.history import History
from gcnsl.training.metrics import METRICS
from gcnsl.training.settings import TrainingSettings

OPTIMIZERS: dict[str, type[Optimizer]] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class RunState:
    """Weights, best weights, optimizer, learning rate, history, and the states of torch's generators.

    An epoch is a training step and an evaluation pass. Between any two epochs the state can be saved. Inside of one it
    can be saved too: after the step, with its loss in ``stepped``, and before that once the step is undone.

    Args:
        model: The model with its initial weights. If it has a method ``parameter_groups(weight_decay)``, the optimizer
            gets the returned groups; otherwise weight decay applies to all parameters.
        settings: Hyper-parameters of training.
    """

    def __init__(self, model: nn.Module, settings: TrainingSettings) -> None:
        self.model = model
        self.device = next(model.parameters()).device
        self.history = History()
        self.stepped: Tensor | None = None
        """The loss of a training step whose evaluation pass is still to come."""
        self._before_step: dict[str, dict[str, Tensor]] | None = None
        self.best = {name: value.detach().clone() for name, value in model.state_dict().items()}
        groups = getattr(model, "parameter_groups", None)
        kind, decay = OPTIMIZERS[settings.optimizer], settings.weight_decay
        parameters = model.parameters() if groups is None else groups(decay)
        self.optimizer = kind(parameters, lr=settings.lr, weight_decay=decay, fused=True)  # type: ignore[call-arg]
        self.scheduler = None
        if settings.plateau_factor is not None:
            self.scheduler = ReduceLROnPlateau(
                self.optimizer,
                mode="max" if settings.monitor != "loss" and METRICS[settings.monitor].greater_is_better else "min",
                factor=settings.plateau_factor,
                patience=settings.plateau_patience,
                threshold=0.0,
            )

    def begin_step(self) -> None:
        """Remember what the forward pass of a training step changes: generators and buffers.

        A GPU is not waited for: the state of its generator is a seed and an offset that the host keeps, and buffers are
        copied on the device.
        """
        buffers = {name: value.clone() for name, value in self.model.named_buffers()}
        self._before_step = {"generator": self._generators(), "buffers": buffers}

    def finish_step(self, loss: Tensor) -> None:
        """Change the weights by their gradients."""
        self.optimizer.step()
        self.stepped, self._before_step = loss, None

    def undo_step(self) -> None:
        """Undo what a training step has changed, if one has begun and is not finished."""
        if self._before_step is not None:
            self._set_generators(self._before_step["generator"])
            for name, value in self.model.named_buffers():
                value.copy_(self._before_step["buffers"][name])
            self._before_step = None

    def keep_best(self) -> None:
        """Remember the current weights as the best so far."""
        for name, value in self.model.state_dict().items():
            self.best[name].copy_(value)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the state by name."""
        parts: dict[str, dict[str, Tensor]] = {"model": self.model.state_dict(), "best": self.best}
        for number, values in self.optimizer.state_dict()["state"].items():
            parts[f"optimizer.{number}"] = values
        parts["generator"] = self._generators()
        if self.stepped is not None:
            parts["stepped"] = {"loss": self.stepped}
        return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}

    def shapes(self) -> dict[str, list[int]]:
        """The shapes of all weights."""
        return {name: list(value.shape) for name, value in self.best.items()}

    def plain(self) -> dict[str, Any]:
        """The rest of the state, for JSON."""
        return {
            "history": self.history.to_dict(),
            "lr": [group["lr"] for group in self.optimizer.param_groups],
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
        }

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Restore the state from what :meth:`tensors` and :meth:`plain` returned."""
        parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for key, value in tensors.items():
            part, name = key.split(".", 1)
            parts[part][name] = value
        self.model.load_state_dict(parts["model"])
        for name, value in self.best.items():
            value.copy_(parts["best"][name])
        state: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for key, value in parts["optimizer"].items():
            number, name = key.split(".", 1)
            state[int(number)][name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        groups = [group | {"lr": lr} for group, lr in zip(groups, plain["lr"], strict=True)]
        self.optimizer.load_state_dict({"state": dict(state), "param_groups": groups})
        if self.scheduler is not None:
            self.scheduler.load_state_dict(plain["scheduler"])
        self.history = History.from_dict(plain["history"])
        self.stepped = parts["stepped"]["loss"].to(self.device) if "stepped" in parts else None
        self._set_generators(parts["generator"])

    def _generators(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return states

    def _set_generators(self, states: dict[str, Tensor]) -> None:
        torch.set_rng_state(states["cpu"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(states["cuda"], self.device)
