"""The learned graph as an operator, `reconnect`: o = Â* h, differentiable; its edges; and the choice of a back end.

This file checks the arguments, calls a back end and tells autograd of the derivative; the back ends do the work.
"""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnsl.checks import check_choice, check_flag, check_number
from gcnsl.errors import ArgumentError
from gcnsl.execution import is_recorded, torch_threads_for
from gcnsl.reconnection.problem import (
    UNIT_TOLERANCE,
    Averages,
    PairMemory,
    Problem,
    check_arguments,
    check_values,
    computed_in,
    threshold_of,
)

BackendName = Literal["auto", "dense", "tiled", "numba", "triton"]
HAS_TRITON = find_spec("triton") is not None
DENSE_PAIRS = 256**2
"""Up to this many pairs, ``"auto"`` takes the dense matrix on a CPU."""
TRITON_WIDTH = 256
"""The widest rows of z and h that fit the on-chip memory of a GPU."""
SAMPLED_ROWS, SAMPLED_KEYS = 128, 1 << 14
"""The most rows and keys from which an ε is estimated."""
LEAST_EPSILON = 1e-3
"""ε if not even all positive similarities give the wanted degree."""
MODULES = {"numba": "numba_backend", "triton": "triton_backend", "tiled": "tiled", "dense": "dense"}
"""Where each back end is. ``"auto"`` takes dense for tiny graphs on a CPU, else the first one that can run."""


def module_of(backend: str) -> Any:
    """The functions of a back end, imported when they are needed, since numba and triton take long to load.

    - ``forward(problem)`` returns :class:`Averages`;
    - ``backward(problem, averages, grad)`` returns :class:`Gradients`, given ∂L/∂o;
    - ``find(problem)`` returns the kept pairs (2 × E, int64), sorted by row, then column.
    """
    return import_module(f"gcnsl.reconnection.{MODULES[backend]}")


def _unmet(backend: str, z: Tensor, width: int) -> str:
    """What is missing to run a back end with this z and rows of at most this width, or an empty string."""
    on_cpu = z.device.type == "cpu"
    if backend == "numba" and not on_cpu:
        return f"needs tensors on the CPU (z is on {z.device})"
    runs_here = z.device.type == "cuda" or (on_cpu and os.environ.get("TRITON_INTERPRET") == "1")
    is_able = HAS_TRITON and runs_here and computed_in(z.dtype) == torch.float32 and width <= TRITON_WIDTH
    if backend == "triton" and not is_able:
        return (
            f"needs a GPU (z is on {z.device}), float32 or half precision (z has {z.dtype}), "
            f"rows of at most {TRITON_WIDTH} entries (there are {width}), and the package triton"
        )
    return ""


def choose_backend(z: Tensor, keys: Tensor, width: int, wanted: BackendName = "auto") -> str:
    """Return the name of the back end to use, for rows of at most ``width`` entries."""
    check_choice("backend", wanted, get_args(BackendName))
    if wanted != "auto":
        if unmet := _unmet(wanted, z, width):
            raise ArgumentError("backend", wanted, unmet)
        return wanted
    if z.device.type == "cpu" and z.shape[0] * keys.shape[0] <= DENSE_PAIRS:
        return "dense"
    return next(name for name in MODULES if not _unmet(name, z, width))


def reconnect(
    z: Tensor,
    h: Tensor,
    epsilon: float | Tensor,
    *,
    keys: Tensor | None = None,
    loops: bool = True,
    backend: BackendName = "auto",
    memory: PairMemory | None = None,
) -> Tensor:
    """Average h over the reconnected graph: o_i = Σ_j a_ij h_j / Σ_j a_ij, a_ij = z_i·z_j where that is ≥ ε, else 0.

    This is Â* H of the paper (section 3.2): z are the normalised rows x_i Q, so that z_i·z_j is their cosine
    similarity. Pairs with a similarity of exactly ε are kept. Only kept pairs are worked on; memory is O(n (p + q))
    for every ε. The result is differentiable in z, h and ``keys``; the derivative of the threshold itself, zero almost
    everywhere, is taken as zero.

    Args:
        z: Rows of norm 1 (n × q). A zero row keeps nothing: its output and its gradients are zero.
        h: What is averaged (n × p; m × p with ``keys``), of z's dtype and device. Half precision is computed in
            float32.
        epsilon: The smallest similarity that is kept, in [0, 1]. It is lowered to 1 minus the rounding error of z's
            dtype (1e-6 for float32), so that rows that are equal but for rounding are always connected. With 0, all
            positive similarities are kept: a similarity of 0 has no weight. It may be a scalar on z's GPU, which is
            neither checked nor read by the host.
        keys: Compare the rows of z with these rows of norm 1 (m × q) instead of with each other, for instance new nodes
            with the nodes of a trained graph. A row of z without a similar key gets zero.
        loops: Whether a row of z counts itself, which it then does for every ε, unless it is zero. If not, it is left
            out of its own sums, and a row that is similar to no other row gets zero. With ``keys`` there are no loops.
        backend: ``"dense"`` (an n × m matrix: tiny graphs, and the oracle), ``"tiled"`` (plain torch, any device),
            ``"numba"`` (CPU), ``"triton"`` (CUDA, float32) or ``"auto"``, which chooses by device, dtype and size.
        memory: Keeps the pairs of z between calls, so that the next call with the same z need not search for them. Only
            the ``"numba"`` back end uses it, since there the search is most of the work.

    Returns:
        The averages (n × p), of h's dtype.

    Raises:
        InputError: if an argument is not as described. Values are not checked while a GPU records the work.
    """
    check_arguments(z, h, keys)
    check_flag("loops", loops)
    threshold = threshold_of(epsilon, z.dtype)
    chosen = choose_backend(z, z if keys is None else keys, max(z.shape[1], h.shape[1]), backend)
    problem_of = partial(Problem.of, threshold=threshold, tolerance=UNIT_TOLERANCE[z.dtype], loops=loops)
    computed = computed_in(z.dtype)
    key_rows = None if keys is None else keys.to(computed)
    memory = memory if keys is None and chosen == "numba" else None
    apply: Any = _Reconnect.apply
    if torch.compiler.is_compiling():  # its tracer would follow the work into numba
        apply = torch.compiler.disable(apply)  # type: ignore[no-untyped-call]
    averages: Tensor = apply(z.to(computed), key_rows, h.to(computed), problem_of, module_of(chosen), memory)
    return averages.to(h.dtype)


class _Reconnect(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0917 - autograd passes arguments by position
        ctx: Any,
        z: Tensor,
        keys: Tensor | None,
        h: Tensor,
        problem_of: Callable[..., Problem],
        backend: Any,
        memory: PairMemory | None,
    ) -> Tensor:
        problem = problem_of(z, keys, h)
        if memory is not None:
            problem = problem._replace(pairs=memory.recall(problem))
        if not is_recorded():
            check_values(problem)
        with torch_threads_for(problem.work):
            averages: Averages = backend.forward(problem)
            if is_recorded():  # values can't be checked, but one that is not finite must not go unnoticed
                averages.out.add_(0 * problem.z.sum())
        if memory is not None and problem.pairs is None:
            memory.keep(problem, averages.pairs)
        ctx.save_for_backward(z, keys, h, averages.out)
        ctx.problem_of, ctx.backend, ctx.rest = problem_of, backend, averages[1:]
        ctx.set_materialize_grads(False)
        return averages.out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if grads[0] is None:
            return (None,) * 6
        z, keys, h, out = ctx.saved_tensors
        problem = ctx.problem_of(z, keys, h)
        with torch_threads_for(problem.work):
            averages = Averages(out.detach(), *ctx.rest)
            gradients = ctx.backend.backward(problem, averages, grads[0].contiguous())
        return gradients.z, None if keys is None else gradients.keys, gradients.h, None, None, None


def reconnected_edges(
    z: Tensor, epsilon: float, *, keys: Tensor | None = None, loops: bool = True, normalize: bool = False
) -> tuple[Tensor, Tensor]:
    """List the edges of A*: all pairs with z_i·z_j ≥ ε.

    Args:
        z: Rows of norm 1, or zero (n × q).
        epsilon: The smallest similarity that is kept, in [0, 1]; see `reconnect`.
        keys: Compare the rows of z with these rows (m × q) instead of with each other.
        loops: Whether to list the pairs (i, i); with ``keys`` all pairs are listed.
        normalize: Divide each weight by the sum of the weights in its row, which gives Â* instead of A*.

    Returns:
        ``edge_index`` (2 × E, int64), with i in the first row and j in the second, sorted by i, then j; and ``weight``
        (E), the similarities z_i·z_j, differentiable in z and ``keys``. Memory is that of the result, plus E·q values
        for the weights.

    Raises:
        InputError: if an argument is not as described, or the edges would not fit into memory.
    """
    check_flag("loops", loops)
    check_flag("normalize", normalize)
    check_arguments(z, z if keys is None else keys, keys)
    rows = z.to(computed_in(z.dtype))
    key_rows = rows if keys is None else keys.to(rows.dtype)
    how: dict[str, Any] = {"tolerance": UNIT_TOLERANCE[z.dtype], "loops": loops}
    problem = Problem.of(rows, None if keys is None else key_rows, key_rows, threshold_of(epsilon, z.dtype), **how)
    check_values(problem)
    with torch_threads_for(len(rows) * key_rows.numel()):
        _check_size(problem, epsilon)
        edge_index: Tensor = module_of(choose_backend(z, problem.keys, z.shape[1])).find(problem)
    source, target = edge_index
    weight = (rows[source] * key_rows[target]).sum(dim=1)
    if normalize:
        weight = weight / weight.new_zeros(len(z)).index_add(0, source, weight)[source]
    return edge_index, weight.to(z.dtype)


def _check_size(problem: Problem, epsilon: float) -> None:
    """Estimate the number of edges from a few rows, before all of them are looked for."""
    z = problem.z
    edges = int(len(z) * problem.degree)
    if z.is_cuda:
        there = int(torch.cuda.mem_get_info(z.device)[0])
    else:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed = edges * (16 + (2 * z.shape[1] + 1) * z.element_size())
    if needed > there:
        raise ArgumentError(
            "epsilon",
            epsilon,
            f"gives about {edges:.1g} edges, which need {needed / 2**30:.0f} GiB of {there / 2**30:.0f}: "
            "raise it, or use reconnect, which lists no edges",
        )


@torch.no_grad()
def epsilon_for_degree(z: Tensor, mean_degree: float) -> Tensor:
    """Return the ε (a scalar) at which a row of z is similar to ``mean_degree`` other rows on average.

    It is estimated: random rows (at most 128, drawn from torch's generator) are compared with all rows or, if there are
    many, with random ones, and ε is the similarity that the wanted share of these pairs reaches. With many equal rows a
    node can have more neighbours than wanted, since they can't be told apart.

    Args:
        z: Rows of norm 1, or zero (n × q).
        mean_degree: The wanted number of neighbours, not counting the node itself.
    """
    check_number("mean_degree", mean_degree, above=0)
    n = len(z)
    rows, keys = (
        torch.arange(n, device=z.device) if n <= most else torch.randint(n, (most,), device=z.device)
        for most in (SAMPLED_ROWS, SAMPLED_KEYS)
    )
    similarity = z[rows] @ z[keys].T
    similarity.masked_fill_(rows[:, None] == keys, -1.0)
    wanted = min(max(round(mean_degree * similarity.numel() / n), 1), similarity.numel())
    reached = similarity.flatten().topk(wanted, sorted=False).values.min()
    return reached.clamp(LEAST_EPSILON, 1.0)
