"""The reconnected graph written down as the paper writes it: one n × m matrix, differentiated by torch.

This is the oracle the other back ends are compared with, and the right choice for tiny graphs, where a matrix of a few
megabytes is cheaper than any cleverness.
"""

import torch
from torch import Tensor

from gcnsl.reconnection import tiled
from gcnsl.reconnection.problem import Averages, Problem

backward, find = tiled.backward, tiled.find


def reconnect(z: Tensor, keys: Tensor, h: Tensor, threshold: float, *, loops: bool = True) -> Tensor:
    """Return Â* h (n × p): a row of A* h divided by the sum of that row of A*, or zero if the row keeps nothing."""
    return forward(Problem(z, keys, h, threshold, loops=loops)).out


def forward(problem: Problem) -> Averages:
    """Return Â* h and the row sums of A* (section 3.2): s_ij = z_i·k_j where it reaches the threshold, 0 elsewhere.

    Several graphs of the same size can be given at once, if all matrices have a first dimension for them.
    """
    similarity = problem.z @ problem.keys.mT
    graph = torch.where(similarity >= problem.threshold, similarity, 0.0)
    if problem.square:
        is_loop = torch.eye(graph.shape[-1], dtype=torch.bool, device=graph.device)
        graph = torch.where(is_loop, similarity if problem.loops else 0.0, graph)
    degree = graph.sum(dim=-1)
    out = (graph @ problem.h) / torch.where(degree > 0, degree, 1.0)[..., None]
    return Averages(out, degree)
