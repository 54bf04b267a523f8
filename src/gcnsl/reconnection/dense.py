"""The reconnected graph written down as the paper writes it: one n × m matrix, differentiated by torch.

This is the oracle the other back ends are compared with, and the right choice for tiny graphs, where a matrix of a few
megabytes is cheaper than any cleverness.
"""

import torch
from torch import Tensor


def similarity_graph(z: Tensor, keys: Tensor, threshold: float) -> Tensor:
    """A* of section 3.2: s_ij = z_i·k_j where it reaches the threshold, 0 elsewhere (n × m)."""
    similarity = z @ keys.T
    return torch.where(similarity >= threshold, similarity, 0.0)


def reconnect(z: Tensor, keys: Tensor, h: Tensor, threshold: float) -> Tensor:
    """Â* h, each row of A* h divided by the sum of that of A*; a row that keeps nothing stays zero (n × p)."""
    graph = similarity_graph(z, keys, threshold)
    degree = graph.sum(dim=1, keepdim=True)
    return (graph @ h) / torch.where(degree > 0, degree, 1.0)
