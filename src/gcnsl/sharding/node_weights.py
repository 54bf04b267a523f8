"""Weights that a model has for every node, such as those of its links: each process keeps those of its nodes."""

from typing import Any

import torch
from torch import Tensor, nn

from gcnsl.sharding import process_group
from gcnsl.sharding.node_rows import NodeRows, gathered, node_rows


def split_weights(model: nn.Module) -> None:
    """Keep only the columns of this process's nodes in the weights of the model's ``node_layers``, if it has some.

    Such a layer is an ``nn.Linear`` without a bias whose inputs stand for the nodes.
    """
    layers: list[Any] = getattr(model, "node_layers", [])
    for layer in layers:
        layer.weight = nn.Parameter(own_columns(layer.weight.detach()))
        layer.weight.is_split = True
        layer.in_features = layer.weight.shape[1]


def join_weights(model: nn.Module) -> None:
    """The inverse of :func:`split_weights`. All processes have to call this."""
    layers: list[Any] = getattr(model, "node_layers", [])
    for layer in layers:
        layer.weight = nn.Parameter(all_columns(layer.weight))
        layer.in_features = layer.weight.shape[1]


def add_up_gradients(model: nn.Module) -> None:
    """Add up the gradients of all processes, except those of split weights, to which all have contributed already."""
    if node_rows() is None:
        return
    shared = [weight.grad for weight in model.parameters() if weight.grad is not None and not is_split(weight)]
    total = process_group.add_up(torch.cat([gradient.flatten() for gradient in shared]))
    for gradient, part in zip(shared, torch.split(total, [each.numel() for each in shared]), strict=True):
        gradient.copy_(part.view_as(gradient))


def is_split(weight: Tensor) -> bool:
    """Whether this process has only a part of a weight."""
    return getattr(weight, "is_split", False)


def split_names(model: nn.Module) -> set[str]:
    """The names of the weights of which this process has a part."""
    return {name for name, weight in model.named_parameters() if is_split(weight)}


def own_columns(weight: Tensor) -> Tensor:
    """The columns of this process (w × k) of weights for all nodes (w × n, or several blocks of n columns)."""
    rows, columns = _rows(), weight.shape[1]
    return weight[:, rows.by_process(columns)[rows.times(columns // rows.n).own]].contiguous()


def all_columns(weight: Tensor) -> Tensor:
    """The weights for all nodes, from those of this process; the inverse of :func:`own_columns`."""
    order = _rows().by_process(whole_weight_shape(weight)[1])
    by_process = gathered(weight.detach().T).T
    return torch.empty_like(by_process).index_copy_(1, order.to(weight.device), by_process)


def whole_weight_shape(weight: Tensor) -> list[int]:
    """The shape of the weights for all nodes, given those of this process."""
    rows = _rows()
    return [weight.shape[0], weight.shape[1] // rows.count * rows.n]


def _rows() -> NodeRows:
    rows = node_rows()
    assert rows is not None, "weights are split in several processes only"
    return rows
