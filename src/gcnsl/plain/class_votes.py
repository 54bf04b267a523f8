"""Label propagation and twins: nodes are classified by the votes of training nodes, not by features."""

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
from torch.nn import functional
from torch_geometric.data import Data

from gcnsl.checks import UNLABELLED
from gcnsl.nn.config import Direction
from gcnsl.nn.graph_model import GraphModel, declared_by
from gcnsl.nn.preprocessing import graph_adjacency, links_to_known
from gcnsl.plain.neighbour_columns import SELF_KNOWN, TWIN, VOTER, Contributions, Source, summed
from gcnsl.plain.plain_config import LabelPropagationConfig, TwinsConfig
from gcnsl.sparse import Matrix, SparseMatrix, fastest_form, to_scipy

PRIOR_SHARE = 0.01
"""How much of each probability comes from the frequencies of the classes, so that none is 0."""
BLOCK = 1 << 22
"""At most so many cosines are computed at a time."""
TIE = 1e-9
"""Cosines that differ by less are equal up to rounding."""


class ClassVotes(GraphModel):
    r"""The labels of the training nodes, and class probabilities made of votes.

    .. math:: p_{ic} = (1 - \lambda) \frac{v_{ic}}{\sum_b v_{ib}} + \lambda \pi_c, \qquad \lambda = 0.01,

    with the prior :math:`\pi_c`, the share of class c among the training nodes plus one node of each class. A node
    without votes has the probabilities :math:`\pi`.

    Args:
        num_nodes: Number of nodes of the training graph (n).
        out_channels: Number of classes (C).
    """

    labels: Tensor
    """Row i holds the weight of node i at its class, or zeros if it is no training node (n × C)."""
    prior: Tensor
    """Frequencies of the classes (C)."""

    def __init__(self, num_nodes: int, out_channels: int) -> None:
        super().__init__()
        self.register_buffer("labels", torch.zeros(num_nodes, out_channels))
        self.register_buffer("prior", torch.full((out_channels,), 1 / out_channels))

    def remember(self, y: Tensor, weight: Tensor) -> None:
        """Store the labels of the training nodes: class numbers, -1 for other nodes (n), and their weights (n)."""
        known = (y != UNLABELLED).nonzero().flatten()
        self.labels.zero_()[known, y[known]] = weight[known]
        counts = self.labels.sum(dim=0) + 1
        self.prior.copy_(counts / counts.sum())

    def log_probabilities(self, votes: Tensor) -> Tensor:
        """Logits of nodes with these votes (n × C)."""
        shares = votes / votes.sum(dim=1, keepdim=True).clamp(min=torch.finfo(votes.dtype).tiny)
        return torch.log((1 - PRIOR_SHARE) * shares + PRIOR_SHARE * self.prior)

    def contributions_of(self, votes: Tensor, *, one: int, other: int) -> Tensor:
        r"""What each voter adds to the log-odds of class ``one`` against class ``other`` (k), from their votes (k × C).

        .. math:: a_j = \bigl(w_{j1} - w_j \pi_1\bigr) I_1 - \bigl(w_{j2} - w_j \pi_2\bigr) I_2, \qquad
            I_c = \frac{\log p_c - \log \pi_c}{s_c - \pi_c},

        with the voter's part :math:`w_{jc}` of all votes, :math:`w_j = \sum_c w_{jc}` and the shares
        :math:`s_c = \sum_j w_{jc}`: integrated gradients from the prior to the shares, in closed form. They add up to
        the change of the log-odds.
        """
        votes, prior = votes.double(), self.prior.double()
        part = votes / votes.sum().clamp(min=torch.finfo(torch.float64).tiny)
        change = part.sum(dim=0) - prior
        rise = torch.log1p((1 - PRIOR_SHARE) * change / prior) / change
        rise = torch.where(change.abs() > TIE, rise, (1 - PRIOR_SHARE) / prior)
        shares: Tensor = ((part - part.sum(dim=1, keepdim=True) * prior) * rise)[:, [one, other]]
        return shares[:, 0] - shares[:, 1]


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

    @classmethod
    def inputs(cls, config: LabelPropagationConfig, graph: Data, **_: Any) -> tuple[Matrix, ...]:
        """X, which is ignored, and Â without loops."""
        return fastest_form(graph.x), graph_adjacency(graph, self_loops=False, norm="symmetric")

    def stages(self, inputs: Sequence[Matrix], y: Tensor, weight: Tensor) -> Iterator[None]:
        """Take one step after the other."""
        self.remember(y, weight / weight[y != UNLABELLED].max())
        self.steps.zero_()
        while True:
            self.steps += 1
            yield

    def logits(self, x: Matrix, adjacency: SparseMatrix) -> Tensor:
        """Log-probabilities of every node (n × C); nodes that are new have no label."""
        return self.log_probabilities(self._scores(adjacency, int(self.steps)))

    def _scores(self, adjacency: SparseMatrix, steps: int) -> Tensor:
        known = scores = functional.pad(self.labels, (0, 0, 0, len(adjacency) - len(self.labels)))
        for _ in range(steps):
            scores = (self.alpha * (adjacency @ scores) + (1 - self.alpha) * known).clamp(0, 1)
        return scores

    def contributions(
        self, inputs: Sequence[Any], graph: Data, config: Any, *, node: int, one: int, other: int
    ) -> Contributions:
        """What a node's own label and each neighbour add: their parts of its votes, which are the last step's."""
        adjacency = inputs[1]
        before = self._scores(adjacency, int(self.steps) - 1)
        row = adjacency.row(node)
        voters = row.nonzero().flatten()
        spread = self.alpha * row[voters, None] * before[voters]
        votes = torch.cat([(1 - self.alpha) * self.labels[[node]], spread])
        clamped = votes.sum(dim=0).clamp(max=1) / votes.sum(dim=0).clamp(min=torch.finfo(votes.dtype).tiny)
        sources = [Source(SELF_KNOWN), *(Source(VOTER, voter) for voter in voters.tolist())]
        return summed(sources, self.contributions_of(votes * clamped, one=one, other=other).tolist())


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

    def logits(self, x: Matrix, links: SparseMatrix) -> Tensor:
        """Log-probabilities of every node (N × C)."""
        votes = nearest_votes(to_scipy(links), self.labels.cpu().numpy())
        return self.log_probabilities(torch.from_numpy(votes).to(self.labels))

    def contributions(
        self, inputs: Sequence[Any], graph: Data, config: Any, *, node: int, one: int, other: int
    ) -> Contributions:
        """What each of a node's twins adds."""
        rows = normalize(to_scipy(inputs[1]).astype(np.float64))
        cosine = (rows @ rows[[node]].T).toarray().ravel()[: len(self.labels)]
        cosine[node] = 0
        cosine[~self.labels.any(dim=1).cpu().numpy()] = 0
        twins = np.flatnonzero((cosine > 0) & (cosine >= cosine.max() - TIE))
        shares = self.contributions_of(self.labels[torch.from_numpy(twins)], one=one, other=other)
        return summed((Source(TWIN, twin) for twin in twins.tolist()), shares.tolist())


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
    parts = (slice(*ends) for ends in itertools.pairwise(links.indptr))
    rows = [links.indices[part].tobytes() + links.data[part].tobytes() for part in parts]
    numbers: dict[bytes, int] = {}
    group = np.array([numbers.setdefault(row, len(numbers)) for row in rows])
    return group, np.unique(group, return_index=True)[1]


def _nearest(cosine: sp.csr_array) -> sp.csr_array:
    """A 1 for the largest entries of each row, if they are positive."""
    best = np.repeat(cosine.max(axis=1).toarray(), np.diff(cosine.indptr))
    is_best = (cosine.data > 0) & (cosine.data >= best - TIE)
    return sp.csr_array((is_best.astype(np.float64), cosine.indices, cosine.indptr), shape=cosine.shape)
