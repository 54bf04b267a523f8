"""The training loop, and what an epoch is."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from gcnsl.checks import UNLABELLED
from gcnsl.errors import Interrupted
from gcnsl.execution import Interruption, seeded
from gcnsl.files import digest
from gcnsl.sparse import Matrix
from gcnsl.training.history import Epoch, History, TimeBudget
from gcnsl.training.objective import Objective, predict_logits
from gcnsl.training.settings import LARGE_GRAPH, StageSettings, TrainingSettings
from gcnsl.training.state import Checkpoint, RunState

MOST_NODES = 8_192
"""In larger graphs the GPU works longer on an epoch than the host needs to start its operations. There it also pays
that the host looks at the number of similar pairs, and lists them if they are few."""


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

    An epoch is a training step and an evaluation pass (:class:`Passes`), which most epochs of large graphs leave out
    (``settings.evaluate_every``); for a model that is no network, it is a stage of :class:`StagedModel`. The run ends
    after ``settings.patience`` epochs without a better validation loss (or metric), after ``settings.epochs``, when it
    has settled (``settings.tolerance``), or when its time is over, with the model in evaluation mode. On a CPU, the
    same seed, weights, inputs and number of threads give the same bits. The caller's random generators are not changed.

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
            when, what = f"after epoch {len(history)}" if len(history) else "in the first epoch", "nothing was saved"
            what += ", because there is no checkpoint, or no place for it"
            if checkpoint is not None and checkpoint.save(state, run):
                what = f"the run is saved in {checkpoint.path}: the same call with this checkpoint continues"
            so_far = state.finish("interrupted") if len(history) else None
            raise Interrupted(f"interrupted {when}; {what}", so_far) from None
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


def passes_of(
    state: RunState, inputs: Sequence[Matrix], objective: Objective, settings: StageSettings, *, record: bool
) -> Passes:
    """The passes of a run; replayed where that pays, if ``record`` says that the model allows it."""
    if not isinstance(settings, TrainingSettings):
        return StagePasses(state, inputs, objective)
    is_small = state.device.type == "cuda" and len(objective.y) <= MOST_NODES
    if record and is_small and settings.evaluate_every == 1:
        from gcnsl.training.cuda_graph import RecordedPasses  # here, because it needs what is below

        return RecordedPasses(state, inputs, objective)
    return Passes(state, inputs, objective)


class Passes:
    """The two passes of each epoch: a training step, and an evaluation, which not every epoch has."""

    def __init__(self, state: RunState, inputs: Sequence[Matrix], objective: Objective) -> None:
        self.state, self.inputs, self.objective = state, inputs, objective

    def epoch(self, *, evaluate: bool) -> dict[str, float] | None:
        """Make an epoch, with an evaluation if so asked; return its values, or ``None`` if there are no more epochs."""
        loss = self._differentiate()
        self.state.optimizer.step()
        if not len(self.state.history) and len(self.objective.y) > LARGE_GRAPH:
            gc.collect()  # where numba has compiled, it leaves cycles that hold the arrays of its callers
        if not evaluate:
            return self.state.history.last | {"train_loss": float(loss)}
        logits = predict_logits(self.state.model, self.inputs)
        return self.objective.named(self.objective.on_device(loss, logits), logits)

    def _differentiate(self) -> Tensor:
        """Compute the gradients; return the cross entropy of the training nodes.

        The gradients of what the model itself adds to the loss are computed after those of the cross entropy, when the
        memory of the forward pass is free again.
        """
        model, objective = self.state.model, self.objective
        self.state.optimizer.zero_grad()
        loss = objective.loss(model.train()(*self.inputs), "train")
        loss.backward()  # type: ignore[no-untyped-call]
        term = getattr(model, "extra_loss", None)
        if term is not None:
            extra: Tensor = term(*self.inputs, y=objective.y, nodes=objective.nodes["train"])
            if extra.requires_grad:
                extra.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


class StagedModel(Protocol):
    """A ``torch.nn.Module`` that is fitted in one or more stages, and can predict after each of them.

    All it learns is in its ``state_dict``.
    """

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Fit the model, and yield after each stage.

        Args:
            inputs: What the model reads, on its device.
            y: Class numbers of the training nodes, -1 for all others (n).
            weight: What each training node weighs (n).
        """
        ...


class StagePasses(Passes):
    """A stage of a :class:`StagedModel` and an evaluation. The model sees the labels of training nodes only."""

    def __init__(self, state: RunState, inputs: Sequence[Matrix], objective: Objective) -> None:
        super().__init__(state, inputs, objective)
        y, train = objective.y, objective.masks["train"]
        weight = torch.ones_like(y, dtype=torch.get_default_dtype())
        if objective.weights is not None:
            weight[train] = objective.weights[y[train]]
        model: Any = state.model.eval()
        self._stages: Iterator[None] = model.stages(inputs, torch.where(train, y, UNLABELLED), weight)

    def epoch(self, *, evaluate: bool = True) -> dict[str, float] | None:
        """Fit the next stage, if there is one, and evaluate it."""
        if next(self._stages, False) is not None:
            return None
        logits = predict_logits(self.state.model, self.inputs)
        return self.objective.named(self.objective.on_device(self.objective.loss(logits, "train"), logits), logits)
