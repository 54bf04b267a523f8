"""One model in place of an ensemble: it learns what the ensemble predicts."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED
from gcnsl.methods import Fitted, find_method, fit, prepare
from gcnsl.selection.blend import Blend


def distil(blend: Blend, method: str, train_mask: Tensor, val_mask: Tensor) -> Fitted:
    """Train a method on all nodes but those for validation, which decide when to stop.

    Nodes without a known label have the class that the ensemble predicts.

    Args:
        blend: The ensemble; its graph has the known labels.
        method: Name of the method.
        train_mask, val_mask: The nodes with known labels (n each).
    """
    of_blend = blend.prepared
    taught = copy.copy(of_blend.graph)
    taught.y = torch.where(taught.y == UNLABELLED, blend.logits().argmax(dim=1), taught.y)
    options: dict[str, Any] = {"rows": train_mask | val_mask, "seed": of_blend.seed, "device": of_blend.device}
    weight = of_blend.method.training.class_weight
    student = prepare(find_method(method).with_options(class_weight=weight), taught, **options)
    fitted = fit(student, train_mask=~val_mask, val_mask=val_mask, seed=of_blend.seed)
    return Fitted(prepare(student.method, of_blend.graph, **options), fitted.model, fitted.history)
