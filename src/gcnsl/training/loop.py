"""The training loop."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn

from gcnsl.errors import Interrupted
from gcnsl.execution import Interruption, seeded
from gcnsl.files import digest
from gcnsl.sparse import Matrix
from gcnsl.training.epoch import Objective, passes_of
from gcnsl.training.history import Epoch, History, TimeBudget
from gcnsl.training.settings import StageSettings
from gcnsl.training.state import Checkpoint, RunState


class Enough(Exception):  # noqa: N818 - it is no error
    """Raised by ``on_epoch`` to end training, as if its time were over."""


def train(
    model: nn.Module,
    inputs: Sequence[Matrix],
    y: Tensor,
    *,
    train_mask: Tensor,
    val_mask: Tensor,
    settings: StageSettings,
    seed: int,
    minutes: float | None = None,
    watch: Mapping[str, Tensor] | None = None,
    class_names: Sequence[Any] | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: Checkpoint | None = None,
    record: bool = False,
) -> History:
    """Train a model with full-batch cross entropy; afterwards it has the weights of the best epoch.

    An epoch is a training step and an evaluation pass, which most epochs of large graphs leave out
    (``settings.evaluate_every``); for a model that is no network, it is a stage of
    :class:`gcnsl.training.epoch.StagedModel`. The run ends after ``settings.patience`` epochs without a better
    validation loss (or metric), after ``settings.epochs``, when it has settled (``settings.tolerance``), or when its
    time is over, with the model in evaluation mode. On a CPU, the same seed, weights, inputs and number of threads give
    the same bits. The caller's random generators are not changed.

    Args:
        model: The model with its initial weights; ``model(*inputs)`` returns the logits of all nodes (n × C). It may
            have a method ``parameter_groups(weight_decay)`` for the optimizer, and a method
            ``extra_loss(*inputs, y=y, nodes=nodes)`` whose value on the training nodes is added to the cross entropy
            in each training step; the history has the cross entropy alone.
        inputs: What the model reads, on its device.
        y: Class numbers (n), -1 if unknown.
        train_mask: The nodes to learn from, boolean (n), all labelled.
        val_mask: The nodes that decide which epoch is best, likewise.
        settings: Hyper-parameters of training; :class:`TrainingSettings` for gradient descent.
        seed: Seed of dropout.
        minutes: Begin no epoch that would end later than so many minutes from now; ``None`` for no limit. One epoch is
            always made, and the last one that is expected to fit is evaluated.
        watch: Further masks by name, whose accuracy is recorded but decides nothing.
        class_names: The names by which ``settings.class_weight`` calls the classes; by default their numbers.
        on_epoch: Called after each epoch; it may raise :class:`Enough`.
        checkpoint: Where to save the run of a network. If the file exists, the run continues from it and gives the same
            bits. The finished run is saved too; remove the file once the model is in a safe place.
        record: Whether a GPU may repeat the epochs of a small graph without the host, which is several times as fast.
            The model must not read values from the device (``float(tensor)``, ``tensor.nonzero()``), and what Python
            decides in an epoch (shapes, counters, random numbers of the CPU) is decided once.

    Raises:
        TrainingDiverged: If a loss becomes NaN or infinite. The checkpoint is kept.
        Interrupted: On Ctrl-C or SIGTERM, at the end of the epoch, after writing the checkpoint. Its ``so_far`` is the
            history, and the model has the weights of the best epoch so far.
        InputError: If a mask is invalid, or the checkpoint belongs to another run.
    """
    settings = settings.for_nodes(len(y))
    budget, state = TimeBudget(minutes), RunState(model, settings)
    masks = {"train": train_mask, "val": val_mask, **(watch or {})}
    objective = Objective(y, masks, settings=settings, class_names=class_names, device=state.device)
    passes = passes_of(state, inputs, objective, settings, record=record)
    run = {} if checkpoint is None else _fingerprint(state, inputs, objective, settings, seed)
    with seeded(seed, state.device), Interruption() as interruption:
        if checkpoint is not None:
            checkpoint.restore(state, run)
        history = state.history
        try:
            while history.remaining(settings) > 0 and budget.allows(1):
                began, is_last = time.perf_counter(), not budget.allows(2)
                with interruption.whole():
                    values = passes.epoch(evaluate=is_last or settings.evaluates(len(history) + 1))
                    if values is None:
                        return state.finish("complete")
                    state.end_epoch(values, began)
                budget.epochs += 1
                if checkpoint is not None and len(history) % checkpoint.every == 0:
                    checkpoint.save(state, run)
                if on_epoch is not None:
                    left = budget.seconds_left(history.remaining(settings))
                    on_epoch(history.last_epoch(masks, settings, left))
            if checkpoint is not None:
                checkpoint.save(state, run)
        except Enough:
            return state.finish("minutes")
        except KeyboardInterrupt:
            interruption.ignore_further()
            saved = checkpoint if checkpoint is not None and checkpoint.save(state, run) else None
            so_far = state.finish("interrupted") if len(history) else None
            raise Interrupted(_how_to_continue(len(history), saved), so_far) from None
    if history.remaining(settings) > 0:
        return state.finish("minutes")
    return state.finish("epochs" if len(history) >= settings.epochs else "patience")


def _fingerprint(
    state: RunState, inputs: Sequence[Matrix], objective: Objective, settings: StageSettings, seed: int
) -> dict[str, Any]:
    """What must be equal for two runs to be the same, as far as it is known here."""
    return asdict(settings) | {
        "seed": seed,
        "device": state.device.type,
        "weights": {name: list(value.shape) for name, value in state.best.items()},
        "inputs": [list(value.shape) for value in inputs],
        "labels and masks": digest({**objective.masks, "y": objective.y})[:16],
    }


def _how_to_continue(epochs: int, checkpoint: Checkpoint | None) -> str:
    when = f"after epoch {epochs}" if epochs else "in the first epoch"
    if checkpoint is None:
        return f"interrupted {when}; nothing was saved, because there is no checkpoint, or no place for it"
    return f"interrupted {when}; the run is saved in {checkpoint.path}: the same call with this checkpoint continues"
