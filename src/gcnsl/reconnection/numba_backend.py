"""The operator on CPU cores: a compiled search for the kept pairs, then work on those pairs alone.

The regime (see `pairs.Regime`) is told from a sample of rows, the same rows each time, so that equal inputs give equal
bits, whatever the number of threads.
"""

import numpy as np
import torch
from torch import Tensor

from gcnsl.reconnection import numba_rows, tiled
from gcnsl.reconnection.neighbourhoods import Listed, Searched
from gcnsl.reconnection.numba_search import UNLIMITED, Floats
from gcnsl.reconnection.pairs import Pairs, Regime, capacity, reserve
from gcnsl.reconnection.threads import for_rows

DENSE_FRACTION = 1 / 10
"""Share of all pairs from which tiles are cheaper: the work on a kept pair costs some 10 times its share of a tile."""
SAMPLED_ROWS = 64


def forward(
    z: Tensor, keys: Tensor, h: Tensor, threshold: float, known: Pairs | None = None
) -> tuple[Tensor, Tensor, Pairs]:
    """Return o = Â* h (n × p), the degrees d (n) and the kept pairs, listed if they are few.

    Pairs of this z that are ``known``, and listed, are not looked for again.
    """
    kept: Listed | Searched
    if known is not None and known.is_(Regime.LISTED):
        kept, pairs = Listed(known.start.numpy(), known.columns.numpy(), len(keys)), known
    else:
        searched = Searched.of(z, keys, threshold)
        listed, regime = _listed_if_few(searched, keys.shape[0])
        pairs = reserve(z, regime)
        if regime == Regime.TILED:
            return *tiled.forward(z, keys, h, threshold), pairs
        if listed is not None:
            pairs.start.numpy()[:] = listed.start
            pairs.columns.numpy()[: len(listed.columns)] = listed.columns
        kept = searched if listed is None else listed
    out, degree = h.new_empty(len(z), h.shape[1]), z.new_empty(len(z))
    arrays = _arrays(z, keys, h, out, degree)
    kept.apply(lambda part: numba_rows.forward_rows(*part, *arrays))
    return out, degree, pairs


def backward(  # noqa: PLR0917 - all that the forward pass knew
    grad: Tensor, z: Tensor, keys: Tensor, h: Tensor, out: Tensor, degree: Tensor, pairs: Pairs, threshold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ∂L/∂z (n × q), ∂L/∂keys (m × q; ∂L/∂z itself where keys are z) and ∂L/∂h (m × p)."""
    if pairs.regime == Regime.TILED:
        return tiled.backward(grad, z, keys, h, out, degree, threshold)
    n, p = grad.shape
    grad_z, grad_h = torch.empty_like(z), torch.empty_like(h)
    grad_keys = grad_z if keys is z else torch.empty_like(keys)
    scaled, offset = torch.empty_like(grad), z.new_empty(n)
    before, after = _arrays(grad, out, degree), _arrays(scaled, offset)
    for_rows(lambda begin, end: numba_rows.scale_gradient_rows(begin, end, *before, *after), n, p)
    kept_by_query: Listed | Searched
    if pairs.regime == Regime.LISTED:
        kept_by_query = Listed(pairs.start.numpy(), pairs.columns.numpy(), len(keys))
    else:
        kept_by_query = Searched.of(z, keys, threshold)
    if keys is z:  # s is symmetric: a node is kept by those whom it keeps
        arrays = _arrays(z, h, scaled, offset, grad_z, grad_h)
        kept_by_query.apply(lambda part: numba_rows.gradient_rows(*part, *arrays))
    else:
        inputs = _arrays(z, keys, h, scaled, offset)
        of_queries, of_keys = _arrays(grad_z), _arrays(grad_keys, grad_h)
        kept_by_query.apply(lambda part: numba_rows.query_gradient_rows(*part, *inputs, *of_queries))
        kept_by_query.transposed().apply(lambda part: numba_rows.key_gradient_rows(*part, *inputs, *of_keys))
    return grad_z, grad_keys, grad_h


def find(z: Tensor, keys: Tensor, threshold: float) -> Tensor:
    """Return all kept pairs as rows and columns (2 × E, int64), sorted by row, then column."""
    listed = Searched.of(z, keys, threshold).listed(limit=UNLIMITED)
    assert listed is not None
    rows = np.repeat(np.arange(len(z)), np.diff(listed.start))
    return torch.from_numpy(np.stack([rows, listed.columns.astype(np.int64)]))


def _listed_if_few(searched: Searched, m: int) -> tuple[Listed | None, Regime]:
    degree = searched.sampled_degree(SAMPLED_ROWS)
    if degree > DENSE_FRACTION * m:
        return None, Regime.TILED
    room = capacity(searched.z, len(searched.rows))
    listed = searched.listed(limit=room) if degree * len(searched.rows) <= 2 * room else None
    return listed, Regime.STREAMED if listed is None else Regime.LISTED


def _arrays(*tensors: Tensor) -> list[Floats]:
    return [tensor.detach().numpy() for tensor in tensors]
