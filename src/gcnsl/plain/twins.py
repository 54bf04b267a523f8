"""Nearest neighbours by links: a node has the class of the training node that links to the same nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from torch import Tensor
from torch_geometric.data import Data

from gcnsl.nn.config import Direction
from gcnsl.nn.graph_model import declared_by
from gcnsl.nn.preprocessing import links_to_known
from gcnsl.plain.class_votes import ClassVotes
from gcnsl.plain.plain_config import TwinsConfig
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form, to_scipy

BLOCK = 1 << 22
"""At most so many cosines are computed at a time."""
TIE = 1e-9
"""Cosines that differ by less are equal up to rounding."""


@declared_by(TwinsConfig)
class Twins(ClassVotes):
    r"""The class of the training node whose links are most like a node's own.

    .. math:: v_{ic} = \sum_{j \in T_i} Y_{jc}, \qquad
        T_i = \operatorname{arg\,max}_{j \ne i, \, j \text{ in training}} \cos(a_i, a_j) > 0

    with the rows :math:`a_i` of A, without loops. If several nodes are equally near, all of them vote. A node without
    links, or with none in common with a training node, has no votes: see :class:`ClassVotes`. There is nothing to
    choose, and so there is a single stage. The direction decides which links the model reads.

    Shapes:
        x, ignored; links (N × n) of the N nodes, of which the first n are those of the training graph → N × C.
    """

    def __init__(self, num_nodes: int, out_channels: int, *, direction: Direction = TwinsConfig.direction) -> None:
        super().__init__(num_nodes, out_channels)

    @classmethod
    def inputs(cls, config: TwinsConfig, graph: Data, **_: Any) -> tuple[Matrix, ...]:
        """X, which is ignored, and the links of every node to the nodes of the training graph."""
        return fastest_form(graph.x), links_to_known(graph, config.direction)

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
    trained = labels.any(axis=1)
    if not trained.any():
        return np.zeros((links.shape[0], labels.shape[1]))
    group, of_group = _equal_rows(links)
    own = group[: len(labels)][trained]
    sums, sizes = np.zeros((len(of_group), labels.shape[1])), np.bincount(own, minlength=len(of_group))
    np.add.at(sums, own, labels[trained])
    known = np.flatnonzero(sizes)
    rows = normalize(links[of_group].astype(np.float64))
    others = rows[known].T.tocsr()
    votes, without_own = np.zeros_like(sums), np.zeros_like(sums)
    step = max(1, BLOCK // len(known))
    for first in range(0, len(votes), step):
        part = slice(first, first + step)
        cosine = (rows[part] @ others).tocsr()
        votes[part] = _nearest(cosine) @ sums[known]
        row = np.repeat(np.arange(cosine.shape[0]), np.diff(cosine.indptr))
        cosine.data[known[cosine.indices] == first + row] = 0
        without_own[part] = _nearest(cosine) @ sums[known]
    of_nodes, linked = votes[group], np.diff(links.indptr)[: len(labels)][trained] > 0
    # a node is not its own twin: it is taken from the votes of those with the same links, or they have none
    others_too = np.where(linked[:, None], of_nodes[: len(labels)][trained] - labels[trained], 0)
    of_nodes[: len(labels)][trained] = np.where(sizes[own][:, None] > 1, others_too, without_own[own])
    return of_nodes


def _equal_rows(links: sp.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of each row's group of equal rows, and a row of each group: a hub can have many nodes of one link."""
    parts = ((links.indices[a:b], links.data[a:b]) for a, b in itertools.pairwise(links.indptr))
    numbers: dict[bytes, int] = {}
    group = np.array([numbers.setdefault(column.tobytes() + value.tobytes(), len(numbers)) for column, value in parts])
    return group, np.unique(group, return_index=True)[1]


def _nearest(cosine: sp.csr_array) -> sp.csr_array:
    """A 1 for the largest entries of each row, if they are positive."""
    best = np.repeat(cosine.max(axis=1).toarray(), np.diff(cosine.indptr))
    return sp.csr_array(
        (((cosine.data > 0) & (cosine.data >= best - TIE)).astype(np.float64), cosine.indices, cosine.indptr),
        shape=cosine.shape,
    )
