"""The training loop."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from gcnsl.errors import Interrupted, TrainingDiverged
from gcnsl.files import digest
from gcnsl.sparse import Matrix
from gcnsl.training.checkpoint import Checkpoint
from gcnsl.training.devices import seeded
from gcnsl.training.history import Epoch, History
from gcnsl.training.interruption import held_back
from gcnsl.training.objective import Objective
from gcnsl.training.settings import TrainingSettings
from gcnsl.training.state import RunState


def train(
    model: nn.Module,
    inputs: Sequence[Matrix],
    y: Tensor,
    *,
    train_mask: Tensor,
    val_mask: Tensor,
    settings: TrainingSettings,
    seed: int,
    watch: Mapping[str, Tensor] | None = None,
    class_names: Sequence[str] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> History:
    """Train a model with full-batch cross entropy; afterwards it has the weights of the best epoch.

    An epoch is a training step and an evaluation pass. The run ends after ``settings.patience`` epochs without a better
    validation loss (or metric), or after ``settings.epochs``, with the model in evaluation mode. On a CPU, the same
    seed, weights, inputs and number of threads give the same bits. The caller's random generators are not changed.

    Args:
        model: The model with its initial weights; ``model(*inputs)`` returns the logits of all nodes (n × C). It may
            have a method ``parameter_groups(weight_decay)`` for the optimizer.
        inputs: What the model reads, on its device.
        y: Class numbers (n), -1 if unknown.
        train_mask: The nodes to learn from, boolean (n), all labelled.
        val_mask: The nodes that decide which epoch is best, likewise.
        settings: Hyper-parameters of training.
        seed: Seed of dropout.
        watch: Further masks by name, whose accuracy is recorded but decides nothing.
        class_names: The names by which ``settings.class_weight`` calls the classes; by default their numbers.
        on_epoch: Called after each epoch.
        checkpoint: Where to save the run. If the file exists, the run continues from it and gives the same bits.

    Raises:
        TrainingDiverged: If a loss becomes NaN or infinite. The checkpoint is kept.
        Interrupted: On Ctrl-C, at the end of the epoch, after writing the checkpoint; if pressed twice, at once.
        InputError: If a mask is invalid, or the checkpoint belongs to another run.
    """
    state = RunState(model, settings)
    objective = Objective(
        y,
        train_mask=train_mask,
        val_mask=val_mask,
        watch=watch or {},
        settings=settings,
        class_names=class_names,
        device=state.device,
    )
    run = {} if checkpoint is None else _fingerprint(state, inputs, objective, settings, seed)
    with seeded(seed, state.device), held_back() as interrupted:
        if checkpoint is not None:
            checkpoint.restore(state, run)
        while state.history.remaining(settings) > 0:
            epoch = _epoch(state, inputs, objective, settings)
            if checkpoint is not None and epoch.number % checkpoint.every == 0:
                checkpoint.save(state, run)
            try:
                if on_epoch is not None:
                    on_epoch(epoch)
                if interrupted():
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                if checkpoint is not None:
                    checkpoint.save(state, run)
                raise Interrupted(_how_to_continue(epoch, checkpoint)) from None
    model.load_state_dict(state.best)
    model.eval()
    state.history.stopped = "epochs" if len(state.history) >= settings.epochs else "patience"
    if checkpoint is not None:
        checkpoint.remove()
    return state.history


@torch.no_grad()
def predict_logits(model: nn.Module, inputs: Sequence[Matrix], **options: Any) -> Tensor:
    """The logits ``model(*inputs, **options)`` of all nodes (n × C), without dropout and gradients, on its device."""
    was_training = model.training
    model.eval()
    logits: Tensor = model(*inputs, **options)
    model.train(was_training)
    return logits


def _epoch(state: RunState, inputs: Sequence[Matrix], objective: Objective, settings: TrainingSettings) -> Epoch:
    """Make a training step and an evaluation pass, and update the state."""
    began = time.perf_counter()
    model, history = state.model.train(), state.history
    loss = objective.loss(model(*inputs), "train")
    state.optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    state.optimizer.step()
    values = objective.read(loss, predict_logits(model, inputs))
    number = len(history) + 1
    _check_finite(values, number, state.optimizer.param_groups[0]["lr"])
    if history.append(values, settings.monitor):
        state.keep_best()
    if state.scheduler is not None:
        state.scheduler.step(values[f"val_{settings.monitor}"])
    history.seconds += time.perf_counter() - began
    return Epoch(
        number=number,
        train_loss=values["train_loss"],
        val_loss=values["val_loss"],
        accuracy={mask: values[f"{mask}_accuracy"] for mask in objective.masks},
        best_epoch=history.best_epoch,
        remaining=history.remaining(settings),
        seconds=history.seconds,
    )


def _check_finite(values: Mapping[str, float], number: int, lr: float) -> None:
    for name in ("train_loss", "val_loss"):
        if not math.isfinite(values[name]):
            raise TrainingDiverged(
                f"training diverged: {name} is {values[name]} in epoch {number} with lr {lr:g}; "
                f"use a smaller lr, such as {lr / 10:g}, or scale the features down"
            )


def _fingerprint(
    state: RunState, inputs: Sequence[Matrix], objective: Objective, settings: TrainingSettings, seed: int
) -> dict[str, Any]:
    """What must be equal for two runs to be the same, as far as it is known here."""
    return asdict(settings) | {
        "seed": seed,
        "device": state.device.type,
        "weights": {name: list(value.shape) for name, value in state.best.items()},
        "inputs": [list(value.shape) for value in inputs],
        "labels and masks": digest({**objective.masks, "y": objective.y})[:16],
    }


def _how_to_continue(epoch: Epoch, checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return f"interrupted after epoch {epoch.number}; nothing was saved, because there is no checkpoint"
    return (
        f"interrupted after epoch {epoch.number}, which is saved in {checkpoint.path}; "
        "run the same again with this checkpoint to continue"
    )
