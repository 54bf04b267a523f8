"""The two passes of an epoch: a training step up to its gradients, and an evaluation."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gcnsl.sparse import Matrix
from gcnsl.training.objective import Objective
from gcnsl.training.state import RunState


def differentiate(state: RunState, inputs: Sequence[Matrix], objective: Objective) -> Tensor:
    """Compute the gradients of a training step; return its loss, the cross entropy alone."""
    state.optimizer.zero_grad()
    loss = objective.loss(state.model.train()(*inputs), "train")
    loss.backward()  # type: ignore[no-untyped-call]
    objective.differentiate_extra_loss(state.model, inputs)
    return loss.detach()


@torch.no_grad()
def predict_logits(model: nn.Module, inputs: Sequence[Matrix], **options: Any) -> Tensor:
    """The logits ``model(*inputs, **options)`` of all nodes (n × C), without dropout and gradients, on its device."""
    was_training = model.training
    model.eval()
    logits: Tensor = model(*inputs, **options)
    model.train(was_training)
    return logits
