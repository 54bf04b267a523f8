"""The operator in plain torch, one tile of similarities at a time: any device, any dtype, never an n × m matrix.

With a_ij = s_ij on kept pairs, d_i = Σ_j a_ij, o_i = Σ_j a_ij h_j / d_i and g = ∂L/∂o, the backward pass is

    ∂L/∂h_j = Σ_i a_ij g_i / d_i
    δ_ij    = (g_i·h_j − g_i·o_i) / d_i      on kept pairs, 0 elsewhere
    ∂L/∂z_i = Σ_j δ_ij k_j                   ∂L/∂k_j = Σ_i δ_ij z_i

Every tile is recomputed where it is needed, so the memory above the inputs and outputs is a few tiles whatever the
threshold is. Where nothing in a tile passes the threshold, its products with h and g are skipped.
"""

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from gcnsl.reconnection.problem import Averages, Gradients, Problem

TILE_SIDE = {"cpu": 1024, "cuda": 4096}
"""The largest number of rows and columns of a tile: 4 MB, which fit a core's cache; on a GPU 64 MB, for fewer tiles."""


def forward(problem: Problem) -> Averages:
    """Return o and d; no pair is listed."""
    z, _, h = problem[:3]
    out, degree = h.new_zeros(len(z), h.shape[1]), z.new_zeros(len(z))
    for rows, columns, graph, row_sums in _occupied_tiles(problem):
        degree[rows] += row_sums
        out[rows].addmm_(graph, h[columns])
    return Averages(out.mul_(_inverse(degree)), degree)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given g = ∂L/∂o."""
    z, keys, h = problem[:3]
    grad_z, grad_h = torch.zeros_like(z), torch.zeros_like(h)
    grad_keys = grad_z if problem.square else torch.zeros_like(keys)
    grad, offset = scaled_gradient(grad, averages)
    for rows, columns, graph, _ in _occupied_tiles(problem):
        grad_h[columns].addmm_(graph.T, grad[rows])
        delta = torch.addmm(offset[rows, None], grad[rows], h[columns].T, beta=-1)
        delta = torch.ops.aten.threshold_backward(delta, graph, 0)  # 0 where the graph has no edge
        grad_z[rows].addmm_(delta, keys[columns])
        grad_keys[columns].addmm_(delta.T, z[rows])
    return Gradients(grad_z, grad_keys, grad_h)


def scaled_gradient(grad: Tensor, averages: Averages) -> tuple[Tensor, Tensor]:
    """Return g_i / d_i and g_i·o_i / d_i, from which all gradients are made; 0 for rows that keep nothing."""
    grad = grad * _inverse(averages.degree)
    return grad, (grad * averages.out).sum(dim=1)


def find(problem: Problem) -> Tensor:
    """Return all kept pairs as rows and columns (2 × E, int64), sorted by row, then column."""
    found = [problem.z.new_empty(0, 2, dtype=torch.int64)]
    for rows, columns, graph, _ in _occupied_tiles(problem):
        found.append(graph.nonzero() + torch.tensor([rows.start, columns.start], device=graph.device))
    pairs = torch.cat(found)
    return pairs[torch.argsort(pairs[:, 0] * len(problem.keys) + pairs[:, 1])].T.contiguous()


def _occupied_tiles(problem: Problem) -> Iterator[tuple[slice, slice, Tensor, Tensor]]:
    """Yield rows, columns, the tile of A* and its row sums, for each tile in which a pair is kept.

    Meanwhile products have full float32: TF32 or bfloat16, if enabled, would change similarities by up to 1e-3.
    """
    z, keys = problem[:2]
    may_skip = z.device.type == "cpu"  # elsewhere, asking would make the host wait for the device at every tile
    side = TILE_SIDE.get(z.device.type, 1024)
    switches = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)  # type: ignore[attr-defined]
    before = [switch.fp32_precision for switch in switches]
    try:
        for switch in switches:
            switch.fp32_precision = "ieee"
        for rows, columns in product(_blocks(len(z), side), _blocks(len(keys), side)):
            graph = _tile(problem, rows, columns)
            row_sums = graph.sum(dim=1)
            if not may_skip or row_sums.any():
                yield rows, columns, graph, row_sums
    finally:
        for switch, precision in zip(switches, before, strict=True):
            switch.fp32_precision = precision


def _tile(problem: Problem, rows: slice, columns: slice) -> Tensor:
    """Return a tile of A*: the similarities that reach the threshold and, whatever they are, the loops, or 0."""
    z, keys, _, threshold = problem[:4]
    similarity = torch.mm(z[rows], keys[columns].T)
    # a view, empty in most tiles
    loops = similarity.diagonal(rows.start - columns.start) if problem.square else similarity.new_empty(0)
    weights = loops * problem.loops
    if isinstance(threshold, Tensor):
        similarity.mul_(similarity >= threshold)
    else:
        zero = torch.zeros((), dtype=similarity.dtype)
        just_below = float(torch.nextafter(zero + threshold, zero))
        torch.threshold_(similarity, just_below, 0)  # keeps values > just_below, that is, >= threshold
    loops.copy_(weights)
    return similarity


def _blocks(n: int, side: int) -> list[slice]:
    """Cut n rows into as few blocks of at most ``side`` rows as possible, of about equal size."""
    size = -(-n // -(-n // side))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def _inverse(degree: Tensor) -> Tensor:
    """Return 1/d (n × 1), and 0 for rows that keep nothing."""
    return torch.where(degree > 0, degree.reciprocal(), 0.0)[:, None]
