"""Epochs of small graphs on a GPU, captured as a CUDA graph and replayed without the host."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from gcnsl.execution import recorded
from gcnsl.sparse import Matrix
from gcnsl.training.loop import Passes
from gcnsl.training.objective import Objective, predict_logits
from gcnsl.training.state import RunState

REHEARSALS = 2
"""The number of epochs before a capture: libraries load their kernels when these are first called."""
_one_at_a_time = threading.Lock()
"""torch can capture only one sequence of operations at a time. Other threads must not use the GPU meanwhile."""


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
