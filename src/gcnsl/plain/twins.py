"""Nearest neighbours by links: a node has the class of the training node that links to the same nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.nn import Precomputed
from gcnsl.nn.config import used_with
from gcnsl.nn.preprocessing import Direction, links_to_known
from gcnsl.options import option
from gcnsl.plain.class_votes import ClassVotes, VotesConfig
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form, to_scipy

BLOCK = 1 << 22
"""At most so many cosines are computed at a time."""
TIE = 1e-9
"""Cosines that differ by less are equal up to rounding."""


@dataclass(frozen=True)
class TwinsConfig(VotesConfig):
    """Hyper-parameters of :class:`Twins`."""

    direction: Direction = option(
        "out", "What is compared, if edges have directions: out-arcs, in-arcs, or all neighbours (undirected)."
    )

    @property
    def uses(self) -> frozenset[str]:
        """The weights, and the directions unless the graph is seen as undirected."""
        return used_with(self.direction)

    def inputs(self, graph: Data, precomputed: Precomputed | None, *, seed: int) -> tuple[Matrix, ...]:
        """X, which is ignored, and the links of every node to the nodes of the training graph."""
        return fastest_form(graph.x), links_to_known(graph, self.direction)

    def build(self, in_channels: int, out_channels: int, num_nodes: int) -> Twins:
        """The model for this number of nodes and classes."""
        return self.make(Twins, num_nodes=num_nodes, out_channels=out_channels)


class Twins(ClassVotes):
    r"""The class of the training node whose links are most like a node's own.

    .. math:: v_{ic} = \sum_{j \in T_i} Y_{jc}, \qquad
        T_i = \operatorname{arg\,max}_{j \ne i, \, j \text{ in training}} \cos(a_i, a_j) > 0

    with the rows :math:`a_i` of A, without loops. If several nodes are equally near, all of them vote. A node without
    links, or with none in common with a training node, has no votes: see :class:`ClassVotes`. There is nothing to
    choose, and so there is a single stage.

    Args:
        num_nodes: Number of nodes of the training graph (n).
        out_channels: Number of classes (C).
        direction: Not used here; it decides which links the model reads.

    Shapes:
        x, ignored; links (N × n) of the N nodes, of which the first n are those of the training graph → N × C.
    """

    def __init__(self, num_nodes: int, out_channels: int, *, direction: Direction = "out") -> None:
        super().__init__(num_nodes, out_channels)
        TwinsConfig.check(direction=direction)

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Remember the labels."""
        self.remember(y, weight)
        yield

    def forward(self, x: Matrix, links: SparseMatrix) -> Tensor:
        """Log-probabilities of every node (N × C)."""
        votes = nearest_votes(to_scipy(links), self.labels.cpu().numpy())
        return self.log_probabilities(torch.from_numpy(votes).to(self.labels))


def nearest_votes(links: sp.csr_array, labels: NDArray[Any]) -> NDArray[Any]:
    """The sum of the labels of each node's nearest training nodes (N × C).

    Args:
        links: Rows to compare (N × n).
        labels: Of the first n nodes (n × C); those with a row of zeros are no training nodes.
    """
    trained = np.flatnonzero(labels.any(axis=1))
    rows = normalize(links.astype(np.float64))
    others = rows[trained].T.tocsr()
    votes = np.zeros((rows.shape[0], labels.shape[1]))
    if not len(trained):
        return votes
    step = max(1, BLOCK // len(trained))
    for first in range(0, len(votes), step):
        cosine = (rows[first : first + step] @ others).tocsr()
        row = np.repeat(np.arange(cosine.shape[0]), np.diff(cosine.indptr))
        cosine.data[trained[cosine.indices] == first + row] = 0  # a node is not its own twin
        best = cosine.max(axis=1).toarray()
        cosine.data = ((cosine.data > 0) & (cosine.data >= best[row] - TIE)).astype(np.float64)
        votes[first : first + step] = cosine @ labels[trained]
    return votes
