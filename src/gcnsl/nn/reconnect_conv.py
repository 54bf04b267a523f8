"""The learned graph A* as a layer with a Q of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from gcnsl.checks import check_epsilon, check_flag, check_number, check_whole
from gcnsl.nn.gated_branches import edges_of_rows, unit_rows
from gcnsl.nn.graph_model import FeatureLinear, as_matrix, check_features
from gcnsl.reconnection import PairMemory, reconnect
from gcnsl.reconnection.in_groups import reconnect_at_any_size
from gcnsl.reconnection.operator import epsilon_for_degree
from gcnsl.sparse import Matrix

MOST_SHARE = 0.1
"""The largest mean degree in a learned graph, as a share of the number of nodes."""


class SimilarityHead(nn.Module):
    r"""A graph of similar nodes. The rows :math:`r_i` of a matrix R describe them, by their features or their links.

    .. math::
        z_i = \frac{r_i Q}{\|r_i Q\|}, \qquad s_{ij} = z_i \cdot z_j, \qquad
        (A_*)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon \text{ and } i \ne j]

    The forward pass returns :math:`\hat A_* H`, the averages over each node's neighbours, or 0 for a node that has
    none. With a wanted mean degree, at most a tenth of all nodes, every training step sets ε to meet it; the last ε is
    kept with the weights. The averages of a large graph are estimated
    (:func:`gcnsl.reconnection.in_groups.reconnect_at_any_size`). With ``loops``, a node is its own neighbour.

    Shapes:
        described R (n × r), dense or sparse; h (n × p) → n × p.
    """

    epsilon: Tensor

    def __init__(
        self, in_channels: int, channels: int, *, mean_degree: float | None, epsilon: float, loops: bool = False
    ) -> None:
        super().__init__()
        self.mean_degree, self.loops = mean_degree, loops
        self.similarity = FeatureLinear(in_channels, channels, bias=False)
        self._initial_epsilon = epsilon
        self.register_buffer("epsilon", torch.tensor(epsilon))
        self._memory = PairMemory()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights (Glorot's uniform distribution)."""
        self.similarity.reset_parameters()
        self.epsilon.fill_(self._initial_epsilon)

    def forward(self, described: Matrix, h: Tensor, *, known: int | None = None) -> Tensor:
        """Averages over the neighbours of every node; nodes after the first ``known`` have known neighbours only."""
        z = self.directions(described)
        if self.training and self.mean_degree is not None and len(z) > 1:
            self.epsilon.copy_(epsilon_for_degree(z, min(self.mean_degree, MOST_SHARE * len(z))))
        # on a GPU ε stays where it is, because reading it would make the host wait
        epsilon, training = self.epsilon if z.is_cuda else float(self.epsilon), self.training
        if known is None or known == len(z):
            return reconnect_at_any_size(z, h, epsilon, loops=self.loops, training=training, memory=self._memory)
        keys, values = z[:known], h[:known]
        of_known = reconnect_at_any_size(keys, values, epsilon, loops=self.loops, training=training)
        return torch.cat([of_known, reconnect(z[known:], values, epsilon, keys=keys)])

    def directions(self, described: Matrix) -> Tensor:
        """Unit rows z (n × q)."""
        return unit_rows(described @ self.similarity.weight.T)

    @torch.no_grad()
    def edges(self, described: Matrix, rows: slice | None = None) -> tuple[Tensor, Tensor]:
        """The edges of A* that begin in some rows: edge_index (2 × E) and similarities (E)."""
        return edges_of_rows(self.directions(described), float(self.epsilon), rows, loops=self.loops)


class ReconnectConv(nn.Module):
    r"""A convolution over the graph of section 3.2 of the paper, which is learned from the features.

    .. math::
        X' = \hat A_* X W + b, \qquad (A_*)_{ij} = s_{ij}\,[s_{ij} \ge \epsilon], \quad s_{ij} = \cos(x_i Q, x_j Q)

    It needs no edges, and takes its place among the layers of PyTorch Geometric: add what it returns to what a
    ``GCNConv`` does, or put both side by side. W, b and Q are learned. There is never an n × n matrix.

    Args:
        in_channels: Number of features per node (d).
        out_channels: Number of columns of the result (p).
        similarity_channels: Number of columns of Q (q).
        epsilon: Smallest cosine similarity that joins two nodes (ε), from 0 to 1.
        mean_degree: Number of neighbours that sets ε in each training step, at most a tenth of the nodes; the last ε is
            kept with the weights. ``None`` for a fixed ε.
        loops: Whether a node is its own neighbour, as in the paper. If not, one without others gets b.
        bias: Whether there is a b.

    Shapes:
        x (n × d), dense or sparse → n × p.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        similarity_channels: int = 16,
        *,
        epsilon: float = 0.95,
        mean_degree: float | None = None,
        loops: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels = check_whole("in_channels", in_channels, least=1)
        self.out_channels = check_whole("out_channels", out_channels, least=1)
        degree = None if mean_degree is None else check_number("mean_degree", mean_degree, above=0)
        self.graph = SimilarityHead(
            in_channels,
            check_whole("similarity_channels", similarity_channels, least=1),
            epsilon=check_epsilon(epsilon),
            mean_degree=degree,
            loops=check_flag("loops", loops),
        )
        self.lin = FeatureLinear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if check_flag("bias", bias) else None

    def reset_parameters(self) -> None:
        """Draw new weights; the bias starts at 0."""
        self.graph.reset_parameters()
        self.lin.reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Matrix) -> Tensor:
        """Â* X W + b."""
        x = as_matrix(check_features(x, self.in_channels, self.lin.weight.dtype))
        averages: Tensor = self.graph(x, self.lin(x))
        return averages if self.bias is None else averages + self.bias

    def learned_graph(self, x: Matrix) -> tuple[Tensor, Tensor]:
        """The learned graph A*: edge_index (2 × E) and similarities (E)."""
        return self.graph.edges(as_matrix(check_features(x, self.in_channels, self.lin.weight.dtype)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels})"
