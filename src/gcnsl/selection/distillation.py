"""One model in place of an ensemble: it learns what the ensemble predicts."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED
from gcnsl.methods import Fitted, find_method, fit, prepare
from gcnsl.selection.blend import Blend


def distil(blend: Blend, method: str, train_mask: Tensor, val_mask: Tensor, *, minutes: float | None = None) -> Fitted:
    """Train a method on all nodes but those for validation, which decide when to stop.

    Nodes without a known label have the class that the ensemble predicts.

    Args:
        blend: The ensemble; its graph has the known labels.
        method: Name of the method.
        train_mask, val_mask: The nodes with known labels (n each).
        minutes: Time to do it; ``None`` for as long as it takes. One epoch is always made.
    """
    began = time.perf_counter()
    of_blend = blend.prepared
    taught = copy.copy(of_blend.graph)
    taught.y = torch.where(taught.y == UNLABELLED, blend.logits().argmax(dim=1), taught.y)
    options: dict[str, Any] = {"rows": train_mask | val_mask, "seed": of_blend.seed, "device": of_blend.device}
    weight = of_blend.method.training.class_weight
    student = prepare(find_method(method).with_options(class_weight=weight), taught, **options)
    left = None if minutes is None else max(0.0, minutes - (time.perf_counter() - began) / 60)
    fitted = fit(student, train_mask=~val_mask, val_mask=val_mask, seed=of_blend.seed, minutes=left)
    return Fitted(replace(student, graph=of_blend.graph), fitted.model, fitted.history)
