"""Losses and accuracies of the logits on the nodes of each mask."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from gcnsl.checks import UNLABELLED
from gcnsl.errors import InputError


class Objective:
    """Cross entropy and accuracy on the nodes of several masks.

    The values of an epoch are read from the device as one vector, so that a GPU is waited for once per epoch.

    Args:
        y: Class numbers (n), -1 if unknown.
        train_mask: The nodes to learn from, boolean (n), all labelled.
        val_mask: The nodes that decide which epoch is best, likewise.
        watch: Further masks by name.
        device: The device of the logits.
    """

    def __init__(
        self,
        y: Tensor,
        *,
        train_mask: Tensor,
        val_mask: Tensor,
        watch: Mapping[str, Tensor],
        device: torch.device,
    ) -> None:
        self.y = y.to(device)
        self.masks = {"train": train_mask.to(device), "val": val_mask.to(device)}
        for name, mask in watch.items():
            if name in self.masks:
                raise InputError(f"watch has a mask named {name!r}, which is the name of another mask: rename it")
            self.masks[name] = mask.to(device)
        for name, mask in self.masks.items():
            _check_mask(f"{name}_mask", mask, self.y)
        self._num_classes = int(y.max()) + 1
        self._sizes = [int(mask.sum()) for mask in self.masks.values()]
        self._nodes = {name: self.masks[name].nonzero().flatten() for name in ("train", "val")}
        self._labels = {name: self.y[nodes] for name, nodes in self._nodes.items()}
        self._members = torch.stack(list(self.masks.values())).to(torch.get_default_dtype())

    def loss(self, logits: Tensor, mask: str) -> Tensor:
        """Mean cross entropy on the nodes of the mask ``"train"`` or ``"val"``."""
        if logits.shape[0] != len(self.y) or logits.shape[1] < self._num_classes:
            raise InputError(
                f"the model returns logits of shape {tuple(logits.shape)}, but y has {len(self.y)} nodes and labels "
                f"up to {self._num_classes - 1}: build the model for this graph"
            )
        return functional.cross_entropy(logits[self._nodes[mask]], self._labels[mask])

    def read(self, train_loss: Tensor, logits: Tensor) -> dict[str, float]:
        """The values of an epoch by name.

        Args:
            train_loss: Loss of the training step.
            logits: Logits of the evaluation pass (n × C).
        """
        right = (logits.argmax(dim=1) == self.y).to(self._members.dtype)
        losses = torch.stack([train_loss.detach(), self.loss(logits, "val")]).to(self._members.dtype)
        train, val, *hits = torch.cat([losses, self._members @ right]).tolist()
        shares = zip(self.masks, hits, self._sizes, strict=True)
        return {"train_loss": train, "val_loss": val} | {f"{name}_accuracy": hit / size for name, hit, size in shares}


def _check_mask(name: str, mask: Tensor, y: Tensor) -> None:
    if mask.shape != y.shape or mask.dtype != torch.bool:
        raise InputError(
            f"{name} has shape {tuple(mask.shape)} and dtype {mask.dtype}: give one boolean per node ({len(y)}); if it "
            "has one column per run, give a single column, mask[:, run]"
        )
    if not mask.any():
        raise InputError(f"{name} selects no node: select at least one labelled node")
    unlabelled = (mask & (y == UNLABELLED)).nonzero()
    if len(unlabelled):
        raise InputError(f"{name}[{int(unlabelled[0])}] selects a node without a label (y is -1): unset it")
