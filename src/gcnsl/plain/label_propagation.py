"""Label propagation (Zhu and Ghahramani, 2002), in the form of torch_geometric's ``LabelPropagation``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED, check_whole
from gcnsl.nn.graph_model import declared_by
from gcnsl.nn.preprocessing import graph_adjacency
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.plain.plain_config import LabelPropagationConfig
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form

MOST_STEPS = 10_000
"""Scores have settled long before; a file that asks for more is damaged."""


@declared_by(LabelPropagationConfig)
class LabelPropagation(ClassVotes):
    r"""Scores that spread from the training nodes along the edges.

    .. math::
        F^{(0)} = Y, \qquad F^{(k)} = \operatorname{clamp}_{[0, 1]} (\alpha \hat A F^{(k-1)} + (1 - \alpha) Y)

    Y has a 1 for the class of each training node and zeros elsewhere, and :math:`\hat A = D^{-1/2} A D^{-1/2}` has no
    loops. The scores :math:`F^{(K)}` are the votes of :class:`ClassVotes`. Each step is a stage, so that K is chosen on
    validation nodes: where neighbours disagree, two steps can be better than one or three. With weights of classes, the
    rows of Y are multiplied by them, scaled so that the largest is 1.

    Shapes:
        x, ignored; adjacency Â (n × n) → n × C.
    """

    steps: Tensor

    def __init__(self, num_nodes: int, out_channels: int, *, alpha: float = LabelPropagationConfig.alpha) -> None:
        super().__init__(num_nodes, out_channels)
        self.alpha = alpha
        self.register_buffer("steps", torch.tensor(0))
        self.register_load_state_dict_post_hook(LabelPropagation._check_loaded)  # type: ignore[no-untyped-call]

    def _check_loaded(self, _: Any) -> None:
        check_whole("steps", int(self.steps), most=MOST_STEPS)

    @classmethod
    def inputs(cls, config: LabelPropagationConfig, graph: Data, **_: Any) -> tuple[Matrix, ...]:
        """X, which is ignored, and Â without loops."""
        return fastest_form(graph.x), graph_adjacency(graph, self_loops=False, norm="symmetric")

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Take one step after the other."""
        self.remember(y, weight / weight[y != UNLABELLED].max())
        self.steps.zero_()
        while self.steps < MOST_STEPS:
            self.steps += 1
            yield

    def forward(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Log-probabilities of every node (n × C); nodes that are new have no label."""
        known = functional.pad(self.labels, (0, 0, 0, len(adjacency) - len(self.labels)))
        scores = known
        for _ in range(int(self.steps)):
            scores = (self.alpha * (adjacency @ scores) + (1 - self.alpha) * known).clamp(0, 1)
        return self.log_probabilities(scores)
