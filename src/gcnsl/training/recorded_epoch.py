"""Epochs of small graphs on a GPU, which repeats them without the host."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gcnsl.recording import recorded
from gcnsl.sparse import Matrix
from gcnsl.training.objective import Objective
from gcnsl.training.passes import differentiate, predict_logits
from gcnsl.training.state import RunState

MOST_NODES = 20_000
"""In larger graphs the GPU works longer on an epoch than the host needs to start its operations. There it also pays
that the host looks at the number of similar pairs, and lists them if they are few."""
REHEARSALS = 2
"""The number of epochs before the recording: libraries load their kernels when these are first called."""
_one_at_a_time = threading.Lock()
"""torch can record only one sequence of operations at a time. Other threads must not use the GPU meanwhile."""


class _Results(NamedTuple):
    """What the device has computed in an epoch: the values to be read, and the logits of the evaluation pass."""

    values: Tensor
    logits: Tensor


class RecordedEpoch:
    """A training step and an evaluation pass as a CUDA graph, which is recorded once and started by a single call.

    The first epochs are rehearsals, in which the same operations are started one by one. Random numbers are those that
    the operations would draw one by one, too. If the learning rate changes, which is a part of the recording, the epoch
    is recorded again.

    Args:
        state: The run, on a GPU. Its model must never look at a value on the device (:mod:`gcnsl.recording`).
        inputs: What the model reads.
        objective: What is measured.
    """

    def __init__(self, state: RunState, inputs: Sequence[Matrix], objective: Objective) -> None:
        self._state, self._inputs, self._objective = state, inputs, objective
        self._stream = _stream(state.device)
        self._rehearsals = REHEARSALS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._rates: list[float] = []

    @staticmethod
    def suits(state: RunState, num_nodes: int) -> bool:
        """Whether it pays to record the epochs of this run."""
        return state.device.type == "cuda" and num_nodes <= MOST_NODES

    def run(self) -> dict[str, float]:
        """Make a training step and an evaluation pass; return the values of the epoch by name."""
        outside = torch.cuda.current_stream(self._state.device)
        self._stream.wait_stream(outside)
        with recorded(), torch.cuda.stream(self._stream):
            if self._rehearsals > 0:
                self._rehearsals -= 1
                results = self._work()
            else:
                graph, results = self._recording()
                graph.replay()
            values = self._objective.named(*results)
        outside.wait_stream(self._stream)
        return values

    def _work(self) -> _Results:
        loss = differentiate(self._state, self._inputs, self._objective)
        self._state.optimizer.step()
        logits = predict_logits(self._state.model, self._inputs)
        return _Results(self._objective.on_device(loss, logits), logits)

    def _recording(self) -> tuple[torch.cuda.CUDAGraph, _Results]:
        """The recorded epoch and where it leaves its results."""
        groups = self._state.optimizer.param_groups
        rates = [group["lr"] for group in groups]
        if self._graph is None or rates != self._rates:
            for group in groups:
                if "capturable" in group:
                    group["capturable"] = True
            self._state.optimizer.zero_grad()  # so that the recording has gradients of its own
            graph = torch.cuda.CUDAGraph()
            with _one_at_a_time, torch.cuda.graph(graph, stream=self._stream):
                self._results = self._work()
            self._graph, self._rates = graph, rates
        return self._graph, self._results


@cache
def _stream(device: torch.device) -> Any:
    """The stream on which epochs are recorded and repeated: each stream would keep some memory of its own."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
