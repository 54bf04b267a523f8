"""The operator on a GPU: candidate pairs are found and worked on one by one if they are few, else tiles are fused.

The host waits for the device once in a forward pass, for the number of candidates and the report on the input together,
and never in a backward pass. Small graphs take the time their launches take, so there are few of them.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

from gcnsl.reconnection import checks, tiled, triton_rows, triton_search, triton_tiles
from gcnsl.reconnection.pairs import Pairs, Regime, capacity, reserve

SEARCH_PROGRAMS = 8192
"""Programs the search is cut into, if it is large enough: many for each processor, so that none waits for another."""
FORWARD_TILE = {"BLOCK_N": 64, "BLOCK_M": 64, "num_warps": 4}
GRADIENT_TILE = {"BLOCK_N": 128, "BLOCK_M": 32, "num_warps": 8}
"""The fastest of the tiles tried on an H200."""
FUSED_WIDTH = 64
"""The widest rows for which a fused tile fits the registers; beyond, matrix products in `tiled.py` are as fast."""
ROW_ENTRIES = 256
"""Entries of h that one program of `triton_rows` loads at a time."""
BLOCK_ENTRIES = 4096
"""The same for the kernels that pass over a matrix once."""


def forward(z: Tensor, keys: Tensor, h: Tensor, threshold: float, tolerance: float) -> tuple[Tensor, Tensor, Pairs]:
    """Return o = Â* h (n × p), the degrees d (n) and the candidate pairs, listed if they are few."""
    (n, q), (m, p) = z.shape, h.shape
    with _device_of(z):
        found = _find_candidates(z, keys, h, threshold, tolerance)
        pairs = reserve(z, Regime.TILED if found is None else Regime.LISTED)
        if found is None and max(q, p) > FUSED_WIDTH:
            return *tiled.forward(z, keys, h, threshold), pairs
        out, degree = h.new_empty(n, p), z.new_empty(n)
        if found is None:
            triton_tiles.forward_tiles[(_blocks(n, FORWARD_TILE["BLOCK_N"]),)](
                z, keys, h, out, degree, n, m, q, p, threshold, Q=_padded(q), P=_padded(p), **FORWARD_TILE
            )
        else:
            found = torch.sort(found).values
            count = found.shape[0]
            triton_rows.forward_rows[(n,)](
                found, count, count.bit_length() + 1, n, m, threshold, pairs.start, pairs.columns,
                z, keys, h, out, degree, q, p, **_row_shape(q, p),
            )  # fmt: skip
    return out, degree, pairs


def backward(  # noqa: PLR0917 - all that the forward pass knew
    grad: Tensor, z: Tensor, keys: Tensor, h: Tensor, out: Tensor, degree: Tensor, pairs: Pairs, threshold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ∂L/∂z (n × q), ∂L/∂keys (m × q; ∂L/∂z itself where keys are z) and ∂L/∂h (m × p)."""
    (n, q), p, listed = z.shape, h.shape[1], bool(pairs.regime == Regime.LISTED)
    if not listed and max(q, p) > FUSED_WIDTH:
        return tiled.backward(grad, z, keys, h, out, degree, threshold)
    scaled, offset = torch.empty_like(grad), z.new_empty(n)
    grad_z, grad_h = torch.empty_like(z), torch.empty_like(h)
    grad_keys = grad_z if keys is z else torch.empty_like(keys)

    def gradient(x: Tensor, y: Tensor, grad_x: Tensor, pairs: Pairs, *, query: bool, key: bool) -> None:
        operands = (x, y, h, scaled, offset, grad_x, grad_h)
        if listed:
            triton_rows.gradient_rows[(x.shape[0],)](
                pairs.start, pairs.columns, *operands, q, p, threshold, QUERY=query, KEY=key, **_row_shape(q, p)
            )
        else:
            triton_tiles.gradient_tiles[(_blocks(x.shape[0], GRADIENT_TILE["BLOCK_N"]),)](
                *operands, x.shape[0], y.shape[0], q, p, threshold,
                QUERY=query, KEY=key, Q=_padded(q), P=_padded(p), **GRADIENT_TILE,
            )  # fmt: skip

    with _device_of(z):
        rows = BLOCK_ENTRIES // _padded(p)
        triton_rows.scale_gradient[(_blocks(n, rows),)](
            grad, out, degree, scaled, offset, n, p, P=_padded(p), BLOCK=rows
        )
        if keys is z:  # s is symmetric: a node is kept by those whom it keeps
            gradient(z, z, grad_z, pairs, query=True, key=True)
        else:
            by_key = _transposed(pairs, keys.shape[0]) if listed else pairs
            gradient(z, keys, grad_z, pairs, query=True, key=False)
            gradient(keys, z, grad_keys, by_key, query=False, key=True)
    return grad_z, grad_keys, grad_h


def _find_candidates(z: Tensor, keys: Tensor, h: Tensor, threshold: float, tolerance: float) -> Tensor | None:
    """Return the candidates, unordered and, where queries are keys, both ways round; None if they are too many."""
    n, m, square = z.shape[0], keys.shape[0], keys is z
    report = torch.zeros(4, dtype=torch.int32, device=z.device)
    z_report, keys_report, h_report, count = report.unbind()
    rounded_keys = _prepare_rows(keys, keys_report, h, h_report, tolerance, has_h=True)
    rounded = rounded_keys if square else _prepare_rows(z, z_report, z, z_report, tolerance, has_h=False)
    kind = torch.int32 if n * m < 2**31 - 1 else torch.int64  # the shorter ones sort in half the time
    room = min(capacity(n), 2**31 - 2**24)  # what programs count in excess of the room must not overflow
    found = torch.empty(room, dtype=kind, device=z.device)
    Q = rounded.shape[1]
    rows = 128 if Q <= 64 else 64
    row_blocks, tiles = _blocks(n, rows), _blocks(m, triton_search.TILE_KEYS)
    each = _blocks(row_blocks * tiles, SEARCH_PROGRAMS)
    triton_search.search[(row_blocks, _blocks(tiles, each))](
        rounded, rounded_keys, n, m, threshold - triton_search.MARGIN, count, found, room, each,
        SQUARE=square, NO_PAIR=torch.iinfo(kind).max, Q=Q, BLOCK=rows, TILE=triton_search.TILE_KEYS, num_warps=4,
    )  # fmt: skip
    bad_z, bad_key, bad_h, n_found = report.tolist()
    if bad_z:
        raise checks.unit_error("z", z, n - bad_z)
    if bad_key:
        raise checks.unit_error("z" if square else "keys", keys, m - bad_key)
    if bad_h:
        raise checks.finite_error("h", h)
    return None if n_found > room else found[:n_found]


def _prepare_rows(  # noqa: PLR0917
    rows: Tensor, report: Tensor, h: Tensor, h_report: Tensor, tolerance: float, has_h: bool
) -> Tensor:
    (n, q), p = rows.shape, h.shape[1]
    Q, P = _padded(q), _padded(p) if has_h else 16
    rounded = rows.new_empty(n, Q, dtype=torch.float16)
    block = BLOCK_ENTRIES // max(Q, P)
    triton_search.prepare_rows[(_blocks(n, block),)](
        rows, rounded, report, h, h_report, n, q, p, tolerance, HAS_H=has_h, Q=Q, P=P, BLOCK=block
    )
    return rounded


def _transposed(pairs: Pairs, m: int) -> Pairs:
    """Return the same pairs by column: which rows keep each of the m columns."""
    n = pairs.start.shape[0] - 1
    rows = torch.repeat_interleave(torch.arange(n, device=pairs.start.device), pairs.start.diff())
    columns, order = torch.sort(pairs.columns[: rows.shape[0]], stable=True)
    start = torch.searchsorted(columns, torch.arange(m + 1, dtype=columns.dtype, device=columns.device))
    return Pairs(start, rows[order].int(), pairs.regime)


def _blocks(entries: int, size: int) -> int:
    """The number of blocks of ``size`` that hold all entries."""
    return -(-entries // size)


def _padded(width: int) -> int:
    """A width that tensor cores accept: a power of two, at least 16."""
    return max(16, 1 << (width - 1).bit_length())


@cache
def _row_shape(q: int, p: int) -> dict[str, int]:
    return {"Q": _padded(q), "P": _padded(p), "BLOCK": max(1, ROW_ENTRIES // _padded(p)), "num_warps": 1}


def _device_of(z: Tensor) -> AbstractContextManager[object]:
    """Kernels start on the current device, which need not be that of the tensors."""
    return torch.cuda.device(z.device) if z.is_cuda else nullcontext()
