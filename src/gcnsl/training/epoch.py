"""What an epoch computes: a training step, an evaluation, and losses and accuracies on the nodes of masks."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcnsl.checks import UNLABELLED
from gcnsl.execution import recorded
from gcnsl.sparse import Matrix
from gcnsl.training.metrics import METRICS
from gcnsl.training.settings import LARGE_GRAPH, StageSettings, TrainingSettings, class_weights
from gcnsl.training.state import RunState

MOST_NODES = 8_192
"""In larger graphs the GPU works longer on an epoch than the host needs to start its operations. There it also pays
that the host looks at the number of similar pairs, and lists them if they are few."""
REHEARSALS = 2
"""The number of epochs before a capture: libraries load their kernels when these are first called."""
_one_at_a_time = threading.Lock()
"""torch can capture only one sequence of operations at a time. Other threads must not use the GPU meanwhile."""


class Objective:
    """Cross entropy and accuracy on the nodes of several masks.

    The values of an epoch are read from the device as one vector, so that a GPU is waited for once per epoch, and once
    more for the probabilities if another metric than accuracy chooses the best epoch.

    Args:
        y: Class numbers (n), -1 if unknown.
        masks: Masks (n) by name, whose nodes are labelled: ``train`` are those to learn from, ``val`` those that decide
            which epoch is best, and others are watched.
        settings: They name the weights of the classes, and what chooses the best epoch.
        class_names: The names of the classes; ``None`` if they are called by their numbers.
        device: The device of the logits.
    """

    def __init__(
        self,
        y: Tensor,
        masks: Mapping[str, Tensor],
        *,
        settings: StageSettings,
        class_names: Sequence[Any] | None,
        device: torch.device,
    ) -> None:
        self.y = y.to(device)
        self.masks = {name: mask.to(device) for name, mask in masks.items()}
        self._sizes = [int(mask.sum()) for mask in self.masks.values()]
        self.nodes = {name: self.masks[name].nonzero().flatten() for name in ("train", "val")}
        self._labels = {name: self.y[nodes] for name, nodes in self.nodes.items()}
        self._val_labels = self._labels["val"].cpu().numpy()
        self._members = torch.stack(list(self.masks.values())).to(torch.get_default_dtype())
        names = range(int(y.max()) + 1) if class_names is None else class_names
        weights = class_weights(settings.class_weight, self._labels["train"], names)
        self.weights = None if weights is None else weights.to(device)
        self._metric = settings.monitor if settings.monitor not in ("loss", "accuracy") else None

    def loss(self, logits: Tensor, mask: str) -> Tensor:
        """Mean cross entropy, weighted by class, on the nodes of the mask ``"train"`` or ``"val"``."""
        weights = self.weights
        if weights is not None:  # a model may know of classes that no node here has
            weights = functional.pad(weights, (0, logits.shape[1] - len(weights)), value=1.0)
        return functional.cross_entropy(logits[self.nodes[mask]], self._labels[mask], weights)

    def on_device(self, train_loss: Tensor, logits: Tensor) -> Tensor:
        """The values of an epoch as one vector on the device: two losses, and the correct nodes of each mask.

        Args:
            train_loss: Loss of the training step.
            logits: Logits of the evaluation pass (n × C).
        """
        right = (logits.softmax(dim=1).argmax(dim=1) == self.y).to(self._members.dtype)
        losses = torch.stack([train_loss, self.loss(logits, "val")]).to(self._members.dtype)
        return torch.cat([losses, self._members @ right])

    def named(self, values: Tensor, logits: Tensor) -> dict[str, float]:
        """The values of an epoch by name, from the vector of :meth:`on_device` and the same logits."""
        train, val, *hits = values.tolist()
        shares = zip(self.masks, hits, self._sizes, strict=True)
        named = {"train_loss": train, "val_loss": val} | {f"{name}_accuracy": hit / size for name, hit, size in shares}
        if self._metric is not None:
            probabilities = logits[self.nodes["val"]].softmax(dim=1).cpu().numpy()
            named[f"val_{self._metric}"] = METRICS[self._metric](probabilities, self._val_labels)
        return named


def passes_of(
    state: RunState, inputs: Sequence[Matrix], objective: Objective, settings: StageSettings, *, record: bool
) -> Passes:
    """The passes of a run; replayed where that pays, if ``record`` says that the model allows it."""
    if not isinstance(settings, TrainingSettings):
        return StagePasses(state, inputs, objective)
    is_small = state.device.type == "cuda" and len(objective.y) <= MOST_NODES
    kind = RecordedPasses if record and is_small and settings.evaluate_every == 1 else Passes
    return kind(state, inputs, objective)


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


class RecordedPasses(Passes):
    """Both passes as a CUDA graph, which is captured once and started by a single call.

    The first epochs are rehearsals, in which the same operations are started one by one. Random numbers are those that
    the operations would draw one by one, too. If the learning rate changes, which is a part of the graph, the epoch is
    captured again. The model must never look at a value on the device (:func:`gcnsl.execution.is_recorded`).
    """

    def __init__(self, state: RunState, inputs: Sequence[Matrix], objective: Objective) -> None:
        super().__init__(state, inputs, objective)
        self._stream = _stream(state.device)
        self._rehearsals = REHEARSALS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._rates: list[float] = []

    def epoch(self, *, evaluate: bool = True) -> dict[str, float]:
        """Make a training step and an evaluation pass."""
        outside = torch.cuda.current_stream(self.state.device)
        self._stream.wait_stream(outside)
        with recorded(), torch.cuda.stream(self._stream):
            if self._rehearsals > 0:
                self._rehearsals -= 1
                results = self._work()
            else:
                graph, results = self._captured()
                graph.replay()
            values = self.objective.named(*results)
        outside.wait_stream(self._stream)
        return values

    def _work(self) -> tuple[Tensor, Tensor]:
        """One epoch; returns the values to be read, and the logits of the evaluation pass."""
        loss = self._differentiate()
        self.state.optimizer.step()
        logits = predict_logits(self.state.model, self.inputs)
        return self.objective.on_device(loss, logits), logits

    def _captured(self) -> tuple[torch.cuda.CUDAGraph, tuple[Tensor, Tensor]]:
        """The graph and where it leaves its results."""
        groups = self.state.optimizer.param_groups
        rates = [group["lr"] for group in groups]
        if self._graph is None or rates != self._rates:
            for group in groups:
                if "capturable" in group:
                    group["capturable"] = True
            self.state.optimizer.zero_grad()  # so that the graph has gradients of its own
            graph = torch.cuda.CUDAGraph()
            with _one_at_a_time, torch.cuda.graph(graph, stream=self._stream):
                self._results = self._work()
            self._graph, self._rates = graph, rates
        return self._graph, self._results


@cache
def _stream(device: torch.device) -> Any:
    """The stream on which epochs are captured and replayed: each stream would keep some memory of its own."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


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


@torch.no_grad()
def predict_logits(model: nn.Module, inputs: Sequence[Matrix], **options: Any) -> Tensor:
    """The logits ``model(*inputs, **options)`` of all nodes (n × C), without dropout and gradients, on its device."""
    was_training = model.training
    model.eval()
    logits: Tensor = model(*inputs, **options)
    model.train(was_training)
    return logits
