"""What label propagation and twins share: nodes are classified by the votes of training nodes, not by features."""

from __future__ import annotations

import torch
from torch import Tensor

from gcnsl.checks import UNLABELLED
from gcnsl.nn.graph_model import GraphModel

PRIOR_SHARE = 0.01
"""How much of each probability comes from the frequencies of the classes, so that none is 0."""


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
        self.labels.zero_()
        self.labels[known, y[known]] = weight[known]
        counts = self.labels.sum(dim=0) + 1
        self.prior.copy_(counts / counts.sum())

    def log_probabilities(self, votes: Tensor) -> Tensor:
        """Logits of nodes with these votes (n × C)."""
        shares = votes / votes.sum(dim=1, keepdim=True).clamp(min=torch.finfo(votes.dtype).tiny)
        return torch.log((1 - PRIOR_SHARE) * shares + PRIOR_SHARE * self.prior)
