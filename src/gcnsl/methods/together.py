"""Train one model in all processes that ``torchrun`` has started, each with some of the nodes.

The first process leads: it reads and prepares the graph, hands out the rows of the others, and has the trained model in
the end. The others follow until they are dismissed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from gcnsl.errors import ArgumentError, Interrupted, TrainingDiverged
from gcnsl.methods.prepared import Prepared
from gcnsl.methods.registry import METHODS, find_method
from gcnsl.nn import ModelConfig
from gcnsl.sharding import process_group
from gcnsl.sharding.node_rows import NodeRows, divided
from gcnsl.sharding.node_weights import join_weights, split_weights
from gcnsl.sharding.process_group import ProcessLost
from gcnsl.sharding.row_shards import shard
from gcnsl.sparse import Matrix
from gcnsl.training import History, choose_device, predict_logits, seeded, train


@dataclass(frozen=True)
class Job:
    """What the first process tells the others, besides their rows of the inputs.

    Attributes:
        config: The hyper-parameters of the model.
        channels: The numbers of features, classes and nodes, from which the model is built.
        options: Further arguments of :func:`gcnsl.training.train`; the seed is also that of the initial weights.
    """

    config: ModelConfig
    channels: tuple[int, int, int]
    options: Mapping[str, Any]


def check_divisible(method: str) -> None:
    """Raise an error if several processes can't train this method together."""
    able = [name for name, known in METHODS.items() if known.config.node_columns is not None]
    if method == "auto" or find_method(method).name not in able:
        raise ArgumentError("method", method, f"can't be trained by torchrun: it must be one of {', '.join(able)}")


@contextmanager
def leading() -> Iterator[None]:
    """Lead the other processes in this block, and dismiss them at its end."""
    with process_group.joined():
        try:
            yield
        finally:
            with suppress(ProcessLost):
                process_group.from_leader(None)


def follow(device: str) -> None:
    """Do what the first process asks for until it dismisses this one. Errors that all processes have are its to tell.

    Raises:
        ProcessLost: If another process has ended.
    """
    with process_group.joined():
        while (job := process_group.from_leader()) is not None:
            inputs = tuple(value.to(choose_device(device)) for value in process_group.receive())
            with suppress(Interrupted, TrainingDiverged):
                with seeded(job.options["seed"]):
                    model = job.config.build(*job.channels).to(inputs[0].device)
                _train(model, inputs, job.channels[2], job.options)


def train_together(model: nn.Module, prepared: Prepared, **options: Any) -> tuple[History, Tensor]:
    """Train a model in all processes; called by the first one. Returns the logits of all nodes (n × C), too.

    Args:
        model: The model with its initial weights; afterwards it has those of the best epoch.
        prepared: What it reads.
        options: Arguments of :func:`gcnsl.training.train`.
    """
    config, graph, inputs = prepared.method.config, prepared.graph, prepared.inputs
    check_divisible(prepared.method.name)
    if any(isinstance(part, nn.BatchNorm1d) for part in model.modules()):
        rule = "can't be trained by torchrun, because no process sees whole columns: use layer or none"
        raise ArgumentError("norm", "batch", rule)
    n, size = graph.num_nodes, process_group.size()
    options |= {"y": graph.y}
    shared = {name: value for name, value in options.items() if name != "on_epoch"}
    with divided(n):  # or an error, before the others have heard of it
        process_group.from_leader(Job(config, (inputs[0].shape[1], len(graph.class_names), n), shared))
    for rank in range(1, size):
        part = shard(inputs, NodeRows.of(n, size, rank), node_columns=config.node_columns or ())
        process_group.hand_out(tuple(value.to("cpu") for value in part), to=rank)
    own = shard(inputs, NodeRows.of(n, size, 0), node_columns=config.node_columns or ())
    del inputs
    prepared.forget_inputs()
    return _train(model, own, n, options)


def _train(model: nn.Module, inputs: tuple[Matrix, ...], n: int, options: Mapping[str, Any]) -> tuple[History, Tensor]:
    """Train a model on the nodes of this process and with those of the others; afterwards it has all its weights."""
    with divided(n):
        split_weights(model)
        try:
            history, logits = train(model, inputs, **options), predict_logits(model, inputs).cpu()
        except Interrupted:
            join_weights(model)
            raise
        join_weights(model)
    return history, logits
