"""A head of the learned graph A*: which nodes are alike, by one measure."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcnsl.nn.compared_rows import unit_rows
from gcnsl.reconnection import PairMemory, reconnect, reconnected_edges
from gcnsl.reconnection.in_groups import reconnect_at_any_size
from gcnsl.reconnection.learned_edges import epsilon_for_degree
from gcnsl.sparse import Matrix

MOST_SHARE = 0.1
"""The largest mean degree, as a share of the number of nodes."""


class SimilarityHead(nn.Module):
    r"""A graph of similar nodes. The rows :math:`r_i` of a matrix R describe them, by their features or their links.

    .. math::
        z_i = \frac{r_i Q}{\|r_i Q\|}, \qquad s_{ij} = z_i \cdot z_j, \qquad
        (A_*)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon \text{ and } i \ne j]

    The forward pass returns :math:`\hat A_* H`, the averages over each node's neighbours, or 0 for a node that has
    none. With a wanted mean degree, every training step sets ε to meet it; the last ε is kept with the weights. The
    averages of a large graph are estimated (:func:`gcnsl.reconnection.in_groups.reconnect_at_any_size`).

    Args:
        in_channels: Number of columns of R (r).
        channels: Number of columns of Q (q).
        mean_degree: The wanted number of neighbours per node, at most a tenth of all nodes; ``None`` for a fixed ε.
        epsilon: The smallest similarity that joins two nodes; with a wanted degree only until the first training step.

    Shapes:
        described R (n × r), dense or sparse; h (n × p) → n × p.
    """

    epsilon: Tensor

    def __init__(self, in_channels: int, channels: int, *, mean_degree: float | None, epsilon: float) -> None:
        super().__init__()
        self.mean_degree = mean_degree
        self.similarity = nn.Linear(in_channels, channels, bias=False)
        self._initial_epsilon = epsilon
        self.register_buffer("epsilon", torch.tensor(epsilon))
        self._memory = PairMemory()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights (Glorot's uniform distribution)."""
        nn.init.xavier_uniform_(self.similarity.weight)
        self.epsilon.fill_(self._initial_epsilon)

    def forward(self, described: Matrix, h: Tensor, *, known: int | None = None) -> Tensor:
        """Averages over the neighbours of every node; nodes after the first ``known`` have known neighbours only."""
        z = self.directions(described)
        if self.training and self.mean_degree is not None and len(z) > 1:
            self.epsilon.copy_(epsilon_for_degree(z, min(self.mean_degree, MOST_SHARE * len(z))))
        # on a GPU ε stays where it is, because reading it would make the host wait
        epsilon, training = self.epsilon if z.is_cuda else float(self.epsilon), self.training
        if known is None or known == len(z):
            return reconnect_at_any_size(z, h, epsilon, loops=False, training=training, memory=self._memory)
        keys, values = z[:known], h[:known]
        of_known = reconnect_at_any_size(keys, values, epsilon, loops=False, training=training)
        return torch.cat([of_known, reconnect(z[known:], values, epsilon, keys=keys)])

    def directions(self, described: Matrix) -> Tensor:
        """Unit rows z (n × q)."""
        return unit_rows(described @ self.similarity.weight.T)

    @torch.no_grad()
    def edges(self, described: Matrix, rows: slice | None = None) -> tuple[Tensor, Tensor]:
        """The edges of A* that begin in some rows: edge_index (2 × E) and similarities (E)."""
        z, epsilon = self.directions(described), float(self.epsilon)
        if rows is None:
            return reconnected_edges(z, epsilon, loops=False)
        (row, column), similarity = reconnected_edges(z[rows], epsilon, keys=z)
        row = torch.arange(len(z), device=z.device)[rows][row]
        other = row != column
        return torch.stack([row, column])[:, other], similarity[other]
