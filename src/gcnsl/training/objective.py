"""What training minimises and records: losses, accuracies and a metric on the nodes of masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gcnsl.sparse import Matrix
from gcnsl.training.metrics import METRICS
from gcnsl.training.settings import StageSettings, class_weights


class Objective:
    """Cross entropy and accuracy on the nodes of several masks.

    The values of an epoch are read from the device as one vector, so that a GPU is waited for once per epoch, and once
    more for the probabilities if another metric than accuracy chooses the best epoch.

    Args:
        y: Class numbers (n), -1 if unknown.
        masks: Masks (n) by name, whose nodes are labelled: ``train`` are those to learn from, ``val`` those that decide
            which epoch is best, and others are watched.
        class_names: The names by which the settings call the classes; ``None`` for their numbers.
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


@torch.no_grad()
def predict_logits(model: nn.Module, inputs: Sequence[Matrix], **options: Any) -> Tensor:
    """The logits ``model(*inputs, **options)`` of all nodes (n × C), without dropout and gradients, on its device."""
    was_training = model.training
    model.eval()
    logits: Tensor = model(*inputs, **options)
    model.train(was_training)
    return logits
