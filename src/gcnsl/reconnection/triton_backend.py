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

SEARCH_ROWS = 64
SEARCH_PROGRAMS = 8192
"""Programs the search is cut into, if it is large enough: many for each processor, so that none waits for another."""
FUSED_PAIRS = 4096**2
"""Up to this many pairs, passing over all of them takes less than the launches of a search."""
SMALL_GRAPH = 1 << 16
EXPECTED_PER_ROW = 16
"""Candidates for each row that are waited for in small graphs, where the launches cost more than the work."""
MOST_CANDIDATES = 2**31 - 2**24
"""Programs of the search may count some in excess of their room, in an integer of 32 bits."""
FORWARD_TILE = {"BLOCK_N": 64, "BLOCK_M": 64, "num_warps": 4}
SMALL_FORWARD_TILE = {"BLOCK_N": 16, "BLOCK_M": 128, "num_warps": 4}
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
    room = min(capacity(z, n), MOST_CANDIDATES)
    expected = min(EXPECTED_PER_ROW * n, room) if n <= SMALL_GRAPH else 0
    pairs = None
    with _device_of(z):
        report = torch.zeros(4, dtype=torch.int32, device=z.device)
        rounded_keys = _prepare_rows(keys, h, report, tolerance, are_keys=keys is not z)
        if n * m <= FUSED_PAIRS and max(q, p) <= FUSED_WIDTH:
            if keys is not z:
                _prepare_rows(z, None, report, tolerance, are_keys=False)
            return _average_small(z, keys, h, threshold, report)
        rounded = rounded_keys if keys is z else _prepare_rows(z, None, report, tolerance, are_keys=False)
        found = _start_search(rounded, rounded_keys, threshold, report, room=room, expected=expected)
        if expected:  # in good hope, the host starts what comes next while the device still searches
            out, degree, pairs = _average_over_list(torch.sort(found[:expected]).values, z, keys, h, threshold)
        count = _read(report, z, keys, h)
        if count > room:
            return *_average_over_tiles(z, keys, h, threshold), reserve(z, Regime.TILED)
        if pairs is None or count > expected:
            listed = torch.sort(found[:count]).values
            del found  # its room is wanted for the list
            out, degree, pairs = _average_over_list(listed, z, keys, h, threshold)
    return out, degree, pairs


def backward(  # noqa: PLR0917 - all that the forward pass knew
    grad: Tensor, z: Tensor, keys: Tensor, h: Tensor, out: Tensor, degree: Tensor, pairs: Pairs, threshold: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ∂L/∂z (n × q), ∂L/∂keys (m × q; ∂L/∂z itself where keys are z) and ∂L/∂h (m × p)."""
    (n, q), p, square = z.shape, h.shape[1], keys is z
    slots = capacity(z, 1) if pairs.is_(Regime.SLOTTED) else 0
    listed = bool(slots) or pairs.is_(Regime.LISTED)
    if not listed and max(q, p) > FUSED_WIDTH:
        return tiled.backward(grad, z, keys, h, out, degree, threshold)
    grad_z, grad_h = torch.empty_like(z), torch.empty_like(h)
    grad_keys = grad_z if square else torch.empty_like(keys)
    with _device_of(z):
        if listed:
            # What the forward pass kept in passing counts, however the similarity is rounded here.
            threshold = threshold / 2 if slots else threshold
            by_key = pairs if square else _transposed(pairs, keys.shape[0])
            for x, y, (start, columns, _), grad_x, query, key in _roles(z, keys, pairs, by_key, grad_z, grad_keys):
                triton_rows.gradient_rows[(x.shape[0],)](
                    start, columns, x, y, h, grad, out, degree, grad_x, grad_h, q, p, threshold,
                    QUERY=query, KEY=key, SLOTS=slots, **_row_shape(q, p),
                )  # fmt: skip
        else:
            scaled, offset = torch.empty_like(grad), z.new_empty(n)
            rows = BLOCK_ENTRIES // _padded(p)
            triton_tiles.scale_gradient[(_blocks(n, rows),)](
                grad, out, degree, scaled, offset, n, p, P=_padded(p), BLOCK=rows
            )
            for x, y, _, grad_x, query, key in _roles(z, keys, pairs, pairs, grad_z, grad_keys):
                triton_tiles.gradient_tiles[(_blocks(x.shape[0], GRADIENT_TILE["BLOCK_N"]),)](
                    x, y, h, scaled, offset, grad_x, grad_h, x.shape[0], y.shape[0], q, p, threshold,
                    QUERY=query, KEY=key, Q=_padded(q), P=_padded(p), **GRADIENT_TILE,
                )  # fmt: skip
    return grad_z, grad_keys, grad_h


def _roles(  # noqa: PLR0917
    z: Tensor, keys: Tensor, by_query: Pairs, by_key: Pairs, grad_z: Tensor, grad_keys: Tensor
) -> list[tuple[Tensor, Tensor, Pairs, Tensor, bool, bool]]:
    """Return x, y, the pairs of x's rows, ∂L/∂x, and whether x are queries or keys, for each gradient kernel to run."""
    if keys is z:  # s is symmetric: a node is kept by those whom it keeps
        return [(z, z, by_query, grad_z, True, True)]
    return [(z, keys, by_query, grad_z, True, False), (keys, z, by_key, grad_keys, False, True)]


def _prepare_rows(rows: Tensor, h: Tensor | None, report: Tensor, tolerance: float, *, are_keys: bool) -> Tensor:
    """Return rows rounded for the search; they, and h where it is given, are looked at on the way."""
    (n, q), p = rows.shape, 1 if h is None else h.shape[1]
    Q, P = _padded(q), _padded(p)
    rounded = rows.new_empty(n, Q, dtype=torch.float16)
    block = BLOCK_ENTRIES // max(Q, P)
    triton_search.prepare_rows[(_blocks(n, block),)](
        rows, rounded, rows if h is None else h, report, n, q, p, tolerance,
        ARE_KEYS=are_keys, HAS_H=h is not None, Q=Q, P=P, BLOCK=block,
    )  # fmt: skip
    return rounded


def _start_search(rows: Tensor, keys: Tensor, threshold: float, report: Tensor, *, room: int, expected: int) -> Tensor:
    """Start the search for candidates among rounded rows and keys, and return where the device will leave them.

    They come unordered and, where queries are keys, both ways round. The first ``expected`` places are filled with what
    is no pair, and sorts behind all pairs, until one comes.
    """
    n, m, square = rows.shape[0], keys.shape[0], keys is rows
    kind = torch.int32 if n * m < 2**31 - 1 else torch.int64  # the shorter ones sort in half the time
    no_pair = torch.iinfo(kind).max
    found = torch.empty(room, dtype=kind, device=rows.device)
    if expected:
        found[:expected].fill_(no_pair)
    row_blocks, tiles = _blocks(n, SEARCH_ROWS), _blocks(m, triton_search.TILE_KEYS)
    each = _blocks(row_blocks * tiles, SEARCH_PROGRAMS)
    triton_search.search[(row_blocks, _blocks(tiles, each))](
        rows, keys, n, m, threshold - triton_search.MARGIN, report, found, room, each,
        SQUARE=square, NO_PAIR=no_pair,
        Q=rows.shape[1], BLOCK=SEARCH_ROWS, TILE=triton_search.TILE_KEYS, num_warps=4,
    )  # fmt: skip
    return found


def _read(report: Tensor, z: Tensor, keys: Tensor, h: Tensor) -> int:
    """Wait for the search, raise what it has to say about the input, and return the number of candidates."""
    bad_z, bad_key, bad_h, count = report.tolist()
    if bad_z:
        raise checks.unit_error("z", z, z.shape[0] - bad_z)
    if bad_key:
        raise checks.unit_error("keys", keys, keys.shape[0] - bad_key)
    if bad_h:
        raise checks.finite_error("h", h)
    return int(count)


def _average_over_list(
    listed: Tensor, z: Tensor, keys: Tensor, h: Tensor, threshold: float
) -> tuple[Tensor, Tensor, Pairs]:
    """Return o, d and the list for the backward pass, from the sorted candidates."""
    (n, q), (m, p), count = z.shape, h.shape, listed.shape[0]
    out, degree, pairs = h.new_empty(n, p), z.new_empty(n), reserve(z, Regime.LISTED)
    triton_rows.forward_rows[(n,)](
        listed, count, count.bit_length() + 1, n, m, threshold, pairs.start, pairs.columns,
        z, keys, h, out, degree, q, p, **_row_shape(q, p),
    )  # fmt: skip
    return out, degree, pairs


def _average_over_tiles(z: Tensor, keys: Tensor, h: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Return o and d from fused tiles, or from matrix products where rows are wide."""
    (n, q), (m, p) = z.shape, h.shape
    if max(q, p) > FUSED_WIDTH:
        return tiled.forward(z, keys, h, threshold)
    out, degree = h.new_empty(n, p), z.new_empty(n)
    triton_tiles.forward_tiles[(_blocks(n, FORWARD_TILE["BLOCK_N"]),)](
        z, keys, h, out, degree, degree, degree, degree, n, m, q, p, threshold,
        SLOTS=0, Q=_padded(q), P=_padded(p), **FORWARD_TILE,
    )  # fmt: skip
    return out, degree


def _average_small(
    z: Tensor, keys: Tensor, h: Tensor, threshold: float, report: Tensor
) -> tuple[Tensor, Tensor, Pairs]:
    """Return o, d and the kept pairs of a small graph: one pass over all pairs, which lists those that are kept."""
    (n, q), (m, p) = z.shape, h.shape
    out, degree = h.new_empty(n, p), z.new_empty(n)
    count, columns = z.new_empty(n + 1, dtype=torch.int64), z.new_empty(capacity(z, n), dtype=torch.int32)
    slots = capacity(z, 1) if keys is z else 0  # the gradient of other keys wants the pairs by key
    triton_tiles.forward_tiles[(_blocks(n, SMALL_FORWARD_TILE["BLOCK_N"]),)](
        z, keys, h, out, degree, count, columns, report, n, m, q, p, threshold,
        SLOTS=slots, Q=_padded(q), P=_padded(p), **SMALL_FORWARD_TILE,
    )  # fmt: skip
    fits = _read(report, z, keys, h) <= slots
    return out, degree, Pairs(count, columns, torch.tensor(int(Regime.SLOTTED if slots and fits else Regime.TILED)))


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
