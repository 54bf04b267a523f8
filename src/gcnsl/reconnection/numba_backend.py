"""The operator on CPU cores: a compiled search for the kept pairs, then work on those pairs alone.

The regime (see `pairs.Regime`) is chosen from a sample of rows. The sample is the same each time, so equal inputs give
equal bits, whatever the number of threads.
"""

import numpy as np
import torch
from torch import Tensor

from gcnsl.reconnection import numba_rows, tiled
from gcnsl.reconnection.numba_pairs import Listed, Searched
from gcnsl.reconnection.numba_search import UNLIMITED, Floats
from gcnsl.reconnection.pairs import Pairs, Regime, capacity, reserve
from gcnsl.reconnection.problem import Averages, Gradients, Problem
from gcnsl.reconnection.threads import for_rows

DENSE_FRACTION = 1 / 10
"""The share of all pairs above which tiles are faster: a kept pair costs about as much as 10 entries of a tile."""
SAMPLED_ROWS = 64


def forward(problem: Problem) -> Averages:
    """Return o, d and the kept pairs, listed if they are few."""
    z, keys, h = problem[:3]
    kept, pairs = _kept_pairs(problem)
    if kept is None:
        return tiled.forward(problem)._replace(pairs=pairs)
    out, degree = h.new_empty(len(z), h.shape[1]), z.new_empty(len(z))
    arrays = _arrays(z, keys, h, out, degree)
    kept.apply(lambda part: numba_rows.forward_rows(*part, *arrays))
    return Averages(out, degree, pairs)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given ∂L/∂o."""
    z, keys, h = problem[:3]
    out, degree, pairs = averages
    if pairs.regime == Regime.TILED:
        return tiled.backward(problem, averages, grad)
    grad_z, grad_h = torch.empty_like(z), torch.empty_like(h)
    grad_keys = grad_z if problem.square else torch.empty_like(keys)
    scaled, offset = torch.empty_like(grad), torch.empty_like(degree)
    before, after = _arrays(grad, out, degree), _arrays(scaled, offset)
    for_rows(lambda begin, end: numba_rows.scale_gradient_rows(begin, end, *before, *after), *grad.shape)
    listed = pairs.regime == Regime.LISTED
    kept = _as_listed(pairs, len(keys)) if listed else _searched(problem)
    if problem.square:
        arrays = _arrays(z, h, scaled, offset, grad_z, grad_h)
        kept.apply(lambda part: numba_rows.gradient_rows(*part, *arrays))
    else:
        inputs = _arrays(z, keys, h, scaled, offset)
        of_queries, of_keys = _arrays(grad_z), _arrays(grad_keys, grad_h)
        kept.apply(lambda part: numba_rows.query_gradient_rows(*part, *inputs, *of_queries))
        kept.transposed().apply(lambda part: numba_rows.key_gradient_rows(*part, *inputs, *of_keys))
    return Gradients(grad_z, grad_keys, grad_h)


def find(problem: Problem) -> Tensor:
    """Return all kept pairs as rows and columns (2 × E, int64), sorted by row, then column."""
    listed = _searched(problem).listed(limit=UNLIMITED)
    assert listed is not None
    rows = np.repeat(np.arange(len(problem.z)), np.diff(listed.start))
    return torch.from_numpy(np.stack([rows, listed.columns.astype(np.int64)]))


def _kept_pairs(problem: Problem) -> tuple[Listed | Searched | None, Pairs]:
    """Choose the regime. Return where to read the kept pairs from (None if in tiles) and what to save of them."""
    n, m = len(problem.z), len(problem.keys)
    if problem.known is not None:
        return _as_listed(problem.known, m), problem.known
    searched = _searched(problem)
    degree = searched.sampled_degree(SAMPLED_ROWS)
    if degree > DENSE_FRACTION * m:
        return None, reserve(problem.z, Regime.TILED)
    room = capacity(problem.z)
    listed = searched.listed(limit=room) if degree * n <= 2 * room else None
    if listed is None:
        return searched, reserve(problem.z, Regime.STREAMED)
    pairs = reserve(problem.z, Regime.LISTED)
    pairs.start.numpy()[:] = listed.start
    pairs.columns.numpy()[: len(listed.columns)] = listed.columns
    return listed, pairs


def _searched(problem: Problem) -> Searched:
    return Searched.of(problem.z, problem.keys, float(problem.threshold), problem.first_key, loops=problem.loops)


def _as_listed(pairs: Pairs, m: int) -> Listed:
    return Listed(pairs.start.numpy(), pairs.columns.numpy(), m)


def _arrays(*tensors: Tensor) -> list[Floats]:
    return [tensor.detach().numpy() for tensor in tensors]
