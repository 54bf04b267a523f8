"""The operator on a GPU: if candidate pairs are few, they are listed and visited one by one, else tiles are fused.

The host waits for the device once in a forward pass, for the report on the input and the number of candidates, and
never in the backward pass of a square problem. Recorded work is done in tiles, without waiting. In small graphs
launching a kernel takes longer than running it, so there are few kernels.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor
from triton import cdiv, next_power_of_2

from gcnsl.reconnection import arguments, tiled, triton_rows, triton_search, triton_tiles
from gcnsl.reconnection.pairs import Pairs, Regime, capacity, reserve
from gcnsl.reconnection.problem import Averages, Gradients, Problem
from gcnsl.recording import is_recorded

find = tiled.find
SEARCH_ROWS = 64
SEARCH_PROGRAMS = 8192
"""The number of programs of a large search: many per processor, so that none idles."""
FUSED_PAIRS = 4096**2
"""Up to this many pairs, computing all similarities takes less time than launching the kernels of a search."""
SMALL_GRAPH = 1 << 16
EXPECTED_PER_ROW = 16
"""Candidates per row to prepare for in graphs of at most SMALL_GRAPH rows, before their number is known."""
MOST_CANDIDATES = 2**31 - 2**24
"""The largest list. Programs of the search may count some candidates beyond it, in an integer of 32 bits."""
FORWARD_TILE = {"BLOCK_N": 32, "BLOCK_M": 128, "num_warps": 4}
"""Here and in the next two, the fastest tile of those tried on an H200."""
SMALL_FORWARD_TILE = {"BLOCK_N": 16, "BLOCK_M": 128, "num_warps": 4}
GRADIENT_TILE = {"BLOCK_N": 128, "BLOCK_M": 32, "num_warps": 8}
GRADIENT_PROGRAMS = 128
"""If there are fewer programs, each with BLOCK_N rows, keys are divided among more, so that fewer processors idle."""
FUSED_WIDTH = 64
"""The widest rows for which a fused tile fits the registers. For wider rows, the products of `tiled` are as fast."""
ROW_ENTRIES = 256
"""Entries of h that one program of `triton_rows` loads at a time."""
BLOCK_ENTRIES = 4096
"""The same for kernels that read a matrix once."""
BEYOND_ALL_KEYS = 1 << 30
"""Where the key that is row 0 is, if rows are not keys."""


def forward(problem: Problem) -> Averages:
    """Return o, d and the candidate pairs, listed if they are few."""
    z, keys, h, _, tolerance = problem[:5]
    (n, q), (m, p) = z.shape, h.shape
    if is_recorded():  # the host can't learn how many candidates there are, nor whether the input is valid
        with _device_of(z):
            return _average_over_tiles(problem, SMALL_FORWARD_TILE if n * m <= FUSED_PAIRS else FORWARD_TILE)
    threshold = _in_memory(problem)
    problem = problem._replace(threshold=threshold)
    room = min(capacity(z), MOST_CANDIDATES)
    expected = min(EXPECTED_PER_ROW * n, room) if n <= SMALL_GRAPH else 0
    early = None
    with _device_of(z):
        report = torch.zeros(4, dtype=torch.int32, device=z.device)
        rounded_keys = _prepare_rows(keys, h, report, tolerance, are_keys=not problem.square)
        rounded = rounded_keys if problem.square else _prepare_rows(z, None, report, tolerance, are_keys=False)
        if n * m <= FUSED_PAIRS and max(q, p) <= FUSED_WIDTH:
            averages = _average_over_tiles(problem, SMALL_FORWARD_TILE)
            _read(report, problem)
            return averages
        found = _start_search(problem, rounded, rounded_keys, report, room=room, expected=expected)
        if expected:  # assume that these are all, and queue the next kernels while the device still searches
            early = _average_over_list(torch.sort(found[:expected]).values, problem)
        count = _read(report, problem)
        if count > room:
            return _average_over_tiles(problem, FORWARD_TILE)
        if early is not None and count <= expected:
            return early
        listed = torch.sort(found[:count]).values
        del found  # frees memory for the list
        return _average_over_list(listed, problem)


def backward(problem: Problem, averages: Averages, grad: Tensor) -> Gradients:
    """Return the gradients, given ∂L/∂o."""
    z, keys, h, threshold = *problem[:3], _in_memory(problem)
    (q, p), (out, degree, pairs) = (z.shape[1], h.shape[1]), averages
    listed, first_key = pairs.regime == Regime.LISTED, _first_key(problem)
    if not listed and max(q, p) > FUSED_WIDTH:
        return tiled.backward(problem, averages, grad)

    def differentiate(x: Tensor, y: Tensor, *, query: bool, key: bool) -> tuple[Tensor, Tensor]:
        """Return the gradients of x and, if they are keys, of h."""
        own = first_key if query else -first_key
        if listed:
            start, columns, _ = pairs if query else _transposed(pairs, len(x))
            grad_x, grad_h = torch.empty_like(x), torch.empty_like(h)
            triton_rows.gradient_rows[(len(x),)](
                start, columns, x, y, h, grad, out, degree, grad_x, grad_h, q, p, threshold, own,
                LOOPS=problem.loops, QUERY=query, KEY=key, **_row_shape(q, p),
            )  # fmt: skip
            return grad_x, grad_h
        blocks, tiles = cdiv(len(x), GRADIENT_TILE["BLOCK_N"]), cdiv(len(y), GRADIENT_TILE["BLOCK_M"])
        parts = max(1, min(GRADIENT_PROGRAMS // blocks, tiles))
        part_x, part_h = x.new_empty(parts, *x.shape), h.new_empty(parts, len(x), p)
        triton_tiles.gradient_tiles[(blocks, parts)](
            x, y, h, *scaled, part_x, part_h, len(x), len(y), q, p, threshold, own,
            cdiv(tiles, parts) * GRADIENT_TILE["BLOCK_M"],
            LOOPS=problem.loops, QUERY=query, KEY=key, Q=_padded(q), P=_padded(p), **GRADIENT_TILE,
        )  # fmt: skip
        return part_x.sum(dim=0), part_h.sum(dim=0) if key else part_h[0]

    with _device_of(z):
        scaled = () if listed else _scale_gradient(averages, grad)
        if problem.square:
            grad_z, grad_h = differentiate(z, z, query=True, key=True)
            return Gradients(grad_z, grad_z, grad_h)
        grad_z, _ = differentiate(z, keys, query=True, key=False)
        return Gradients(grad_z, *differentiate(keys, z, query=False, key=True))


def _scale_gradient(averages: Averages, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Return g / d (n × p) and g·o / d (n)."""
    (n, p), rows = grad.shape, BLOCK_ENTRIES // _padded(grad.shape[1])
    scaled, offset = torch.empty_like(grad), torch.empty_like(averages.degree)
    triton_tiles.scale_gradient[(cdiv(n, rows),)](
        grad, averages.out, averages.degree, scaled, offset, n, p, P=_padded(p), BLOCK=rows
    )
    return scaled, offset


def _prepare_rows(rows: Tensor, h: Tensor | None, report: Tensor, tolerance: float, *, are_keys: bool) -> Tensor:
    """Return rows rounded for the search; the same kernel checks them, and h if given."""
    (n, q), p = rows.shape, 1 if h is None else h.shape[1]
    Q, P = _padded(q), _padded(p)
    rounded = rows.new_empty(n, Q, dtype=torch.float16)
    block = BLOCK_ENTRIES // max(Q, P)
    triton_search.prepare_rows[(cdiv(n, block),)](
        rows, rounded, h, report, n, q, p, tolerance, ARE_KEYS=are_keys, HAS_H=h is not None, Q=Q, P=P, BLOCK=block
    )
    return rounded


def _start_search(problem: Problem, rows: Tensor, keys: Tensor, report: Tensor, *, room: int, expected: int) -> Tensor:
    """Start the search for candidates among rounded rows and keys; return the tensor that the device will fill.

    Candidates are not sorted. If keys are the rows themselves, a pair comes in both orders. The first ``expected``
    places are initialised with a number that is no pair and sorts behind all pairs.
    """
    n, m, square = rows.shape[0], keys.shape[0], keys is rows
    dtype = torch.int32 if n * m < 2**31 - 1 else torch.int64  # sorting int32 takes half the time
    no_pair = torch.iinfo(dtype).max
    found = torch.empty(room, dtype=dtype, device=rows.device)
    if expected:
        found[:expected].fill_(no_pair)
    row_blocks, tiles = cdiv(n, SEARCH_ROWS), cdiv(m, triton_search.TILE_KEYS)
    each = cdiv(row_blocks * tiles, SEARCH_PROGRAMS)
    triton_search.search[(row_blocks, cdiv(tiles, each))](
        rows, keys, n, m, _in_memory(problem), _first_key(problem), report, found, room, each,
        SQUARE=square, NO_PAIR=no_pair,
        Q=rows.shape[1], BLOCK=SEARCH_ROWS, TILE=triton_search.TILE_KEYS, LEEWAY=triton_search.MARGIN, num_warps=4,
    )  # fmt: skip
    return found


def _read(report: Tensor, problem: Problem) -> int:
    """Wait for the report; raise an error if the input is invalid, else return the number of candidates."""
    bad_z, bad_key, bad_h, count = report.tolist()
    if bad_z:
        raise arguments.unit_error("z", problem.z, len(problem.z) - bad_z)
    if bad_key:
        raise arguments.unit_error("keys", problem.keys, len(problem.keys) - bad_key)
    if bad_h:
        raise arguments.finite_error("h", problem.h)
    return int(count)


def _average_over_list(listed: Tensor, problem: Problem) -> Averages:
    """Return the averages over sorted candidates, which are listed for the backward pass."""
    z, keys, h, threshold = *problem[:3], _in_memory(problem)
    (n, q), (m, p), count = z.shape, h.shape, listed.shape[0]
    out, degree, pairs = h.new_empty(n, p), z.new_empty(n), reserve(z, Regime.LISTED)
    triton_rows.forward_rows[(n,)](
        listed, count, count.bit_length() + 1, n, m, threshold, _first_key(problem), pairs.start, pairs.columns,
        z, keys, h, out, degree, q, p, LOOPS=problem.loops, **_row_shape(q, p),
    )  # fmt: skip
    return Averages(out, degree, pairs)


def _average_over_tiles(problem: Problem, tile: dict[str, int]) -> Averages:
    """Return the averages from fused tiles, or from matrix products if rows are wide."""
    z, keys, h, threshold = *problem[:3], _in_memory(problem)
    (n, q), (m, p), pairs = z.shape, h.shape, reserve(z, Regime.TILED)
    if max(q, p) > FUSED_WIDTH:
        return tiled.forward(problem)._replace(pairs=pairs)
    out, degree = h.new_empty(n, p), z.new_empty(n)
    triton_tiles.forward_tiles[(cdiv(n, tile["BLOCK_N"]),)](
        z, keys, h, out, degree, n, m, q, p, threshold, _first_key(problem),
        LOOPS=problem.loops, Q=_padded(q), P=_padded(p), **tile,
    )  # fmt: skip
    return Averages(out, degree, pairs)


def _transposed(pairs: Pairs, m: int) -> Pairs:
    """Return the same pairs by key: for each of the m keys, the rows that keep it."""
    n = pairs.start.shape[0] - 1
    rows = torch.repeat_interleave(torch.arange(n, device=pairs.start.device), pairs.start.diff())
    columns, order = torch.sort(pairs.columns[: rows.shape[0]], stable=True)
    start = torch.searchsorted(columns, torch.arange(m + 1, dtype=columns.dtype, device=columns.device))
    return pairs._replace(start=start, columns=rows[order].int())


def _in_memory(problem: Problem) -> Tensor:
    """Return the threshold in the device's memory (1), where kernels read it."""
    if isinstance(problem.threshold, Tensor):
        return problem.threshold
    return torch.full((1,), problem.threshold, dtype=torch.float32, device=problem.z.device)


def _first_key(problem: Problem) -> int:
    return BEYOND_ALL_KEYS if problem.first_key is None else problem.first_key


def _padded(width: int) -> int:
    """Return the next width that tensor cores accept: a power of two, at least 16."""
    return max(16, int(next_power_of_2(width)))


@cache
def _row_shape(q: int, p: int) -> dict[str, int]:
    return {"Q": _padded(q), "P": _padded(p), "BLOCK": max(1, ROW_ENTRIES // _padded(p)), "num_warps": 1}


def _device_of(z: Tensor) -> AbstractContextManager[object]:
    """Make z's device current, since kernels are launched on the current device."""
    return torch.cuda.device(z.device) if z.is_cuda else nullcontext()
