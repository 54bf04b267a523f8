"""The training loop."""

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn

from gcnsl.errors import Interrupted, TrainingDiverged
from gcnsl.files import digest
from gcnsl.sparse import Matrix
from gcnsl.training.checkpoint import Checkpoint
from gcnsl.training.devices import seeded
from gcnsl.training.history import Epoch, History
from gcnsl.training.interruption import Interruption
from gcnsl.training.objective import Objective
from gcnsl.training.passes import differentiate, predict_logits
from gcnsl.training.recorded_epoch import RecordedEpoch
from gcnsl.training.settings import LARGE_GRAPH, TrainingSettings
from gcnsl.training.state import RunState
from gcnsl.training.time_budget import TimeBudget


def train(
    model: nn.Module,
    inputs: Sequence[Matrix],
    y: Tensor,
    *,
    train_mask: Tensor,
    val_mask: Tensor,
    settings: TrainingSettings,
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
    (``settings.evaluate_every``). The run ends after ``settings.patience`` epochs without a better validation loss (or
    metric), after ``settings.epochs``, when it has settled (``settings.tolerance``), or when its time is over, with the
    model in evaluation mode. On a CPU, the same seed, weights, inputs and number of threads give the same bits. The
    caller's random generators are not changed.

    Args:
        model: The model with its initial weights; ``model(*inputs)`` returns the logits of all nodes (n × C). It may
            have a method ``parameter_groups(weight_decay)`` for the optimizer, and a method
            ``extra_loss(*inputs, y=y, nodes=nodes)`` whose value on the training nodes is added to the cross entropy
            in each training step; the history has the cross entropy alone.
        inputs: What the model reads, on its device.
        y: Class numbers (n), -1 if unknown.
        train_mask: The nodes to learn from, boolean (n), all labelled.
        val_mask: The nodes that decide which epoch is best, likewise.
        settings: Hyper-parameters of training.
        seed: Seed of dropout.
        minutes: Begin no epoch that would end later than so many minutes from now; ``None`` for no limit. One epoch is
            always made, and the last one that is expected to fit is evaluated.
        watch: Further masks by name, whose accuracy is recorded but decides nothing.
        class_names: The names by which ``settings.class_weight`` calls the classes; by default their numbers.
        on_epoch: Called after each epoch.
        checkpoint: Where to save the run. If the file exists, the run continues from it and gives the same bits. The
            finished run is saved too; remove the file once the model is in a safe place.
        record: Whether a GPU may repeat the epochs of a small graph without the host, which is several times as fast.
            The model must not read values from the device (``float(tensor)``, ``tensor.nonzero()``), and what Python
            decides in an epoch (shapes, counters, random numbers of the CPU) is decided once.

    Raises:
        TrainingDiverged: If a loss becomes NaN or infinite. The checkpoint is kept.
        Interrupted: On Ctrl-C or SIGTERM, after writing the checkpoint. Its ``so_far`` is the history, and the model
            has the weights of the best epoch so far. A resumed run continues at the point of the interruption, even
            in the midst of an epoch.
        InputError: If a mask is invalid, or the checkpoint belongs to another run.
    """
    settings = settings.for_nodes(len(y))
    budget, state = TimeBudget(minutes), RunState(model, settings)
    objective = Objective(
        y,
        train_mask=train_mask,
        val_mask=val_mask,
        watch=watch or {},
        settings=settings,
        class_names=class_names,
        device=state.device,
    )
    repeats = record and settings.evaluate_every == 1 and RecordedEpoch.suits(state, len(y))
    repeated = RecordedEpoch(state, inputs, objective) if repeats else None
    run = {} if checkpoint is None else _fingerprint(state, inputs, objective, settings, seed)
    with seeded(seed, state.device), Interruption() as interruption:
        if checkpoint is not None:
            checkpoint.restore(state, run)
        try:
            while state.history.remaining(settings) > 0:
                if budget.is_spent:
                    break
                if repeated is not None and state.stepped is None:
                    _repeated_epoch(state, repeated, settings, interruption)
                else:
                    evaluate = budget.is_almost_spent or settings.evaluates(len(state.history) + 1)
                    _epoch(state, inputs, objective, settings, interruption, evaluate=evaluate)
                if budget.count_epoch() == 1 and len(y) > LARGE_GRAPH:
                    gc.collect()  # where numba has compiled, it leaves cycles that hold the arrays of its callers
                if checkpoint is not None and len(state.history) % checkpoint.every == 0:
                    checkpoint.save(state, run)
                if on_epoch is not None:
                    left = budget.seconds_left(state.history.remaining(settings))
                    on_epoch(state.history.last_epoch(objective.masks, settings, left))
            if checkpoint is not None and (checkpoint.keeps_finished or state.history.remaining(settings) > 0):
                checkpoint.save(state, run)
        except KeyboardInterrupt:
            interruption.ignore_further()
            state.undo_step()
            saved = checkpoint if checkpoint is not None and checkpoint.save(state, run) else None
            so_far = _finish(state, "interrupted") if len(state.history) else None
            raise Interrupted(_how_to_continue(len(state.history), saved), so_far) from None
    return _finish(state, state.history.why_ended(settings))


def _epoch(
    state: RunState,
    inputs: Sequence[Matrix],
    objective: Objective,
    settings: TrainingSettings,
    interruption: Interruption,
    *,
    evaluate: bool,
) -> None:
    """Make a training step, unless an interrupted run has made it; evaluate it if so asked; update the state."""
    began, history = time.perf_counter(), state.history
    if state.stepped is None:
        state.begin_step()
        loss = differentiate(state, inputs, objective)
        with interruption.whole():
            state.finish_step(loss)
            stepped = time.perf_counter()
            history.seconds, began = history.seconds + stepped - began, stepped
    assert state.stepped is not None
    if evaluate:
        logits = predict_logits(state.model, inputs)
        values = objective.named(objective.on_device(state.stepped, logits), logits)
    else:
        values = history.last | {"train_loss": float(state.stepped)}
    with interruption.whole():
        _end_epoch(state, values, settings, began)


def _repeated_epoch(
    state: RunState, repeated: RecordedEpoch, settings: TrainingSettings, interruption: Interruption
) -> None:
    """The same on a GPU that has recorded an epoch. It can't be interrupted in between."""
    began = time.perf_counter()
    with interruption.whole():
        _end_epoch(state, repeated.run(), settings, began)


def _end_epoch(state: RunState, values: Mapping[str, float], settings: TrainingSettings, began: float) -> None:
    """Add the values of an epoch to the history, and keep the weights if they are the best."""
    history = state.history
    _check_finite(values, len(history) + 1, state.optimizer.param_groups[0]["lr"])
    state.stepped = None
    if history.append(values, settings.monitor):
        state.keep_best()
    if state.scheduler is not None:
        state.scheduler.step(values[f"val_{settings.monitor}"])
    history.seconds += time.perf_counter() - began


def _finish(state: RunState, why: str) -> History:
    """Give the model its best weights, free the memory of its gradients, and say why the run has ended."""
    state.model.load_state_dict(state.best)
    state.model.eval().zero_grad()
    state.history.stopped = why
    return state.history


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
        "weights": state.shapes(),
        "inputs": [list(value.shape) for value in inputs],
        "labels and masks": digest({**objective.masks, "y": objective.y})[:16],
    }


def _how_to_continue(epochs: int, checkpoint: Checkpoint | None) -> str:
    when = f"after epoch {epochs}" if epochs else "in the first epoch"
    if checkpoint is None:
        return f"interrupted {when}; nothing was saved, because there is no checkpoint, or no place for it"
    return f"interrupted {when}; the run is saved in {checkpoint.path}: the same call with this checkpoint continues"
