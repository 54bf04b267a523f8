# ruff: noqa: PLR0917 - the arguments of registered operators go by position
"""`reconnect`, the learned graph as an operator: o = Â* h, registered with torch and differentiable.

This file checks the arguments, calls the back end and tells torch how the operator behaves (shapes for `torch.compile`,
derivative for autograd); the back ends do the work.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnsl.checks import check_flag, check_whole
from gcnsl.cores import torch_threads_for
from gcnsl.reconnection.arguments import UNIT_TOLERANCE, check_arguments, check_values, computed_in, threshold_of
from gcnsl.reconnection.backends import BACKENDS, BackendName, choose_backend
from gcnsl.reconnection.pairs import PairMemory, Pairs, Regime, capacity, unlisted
from gcnsl.reconnection.problem import Averages, Problem
from gcnsl.recording import is_recorded


def reconnect(
    z: Tensor,
    h: Tensor,
    epsilon: float | Tensor,
    *,
    keys: Tensor | None = None,
    loops: bool = True,
    first_key: int | None = None,
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
            out of its own sums, and a row that is similar to no other row gets zero. With ``keys``, which of them is
            the row itself is known from ``first_key`` only.
        first_key: If the rows of z are some consecutive ``keys``, the number of the first of them.
        backend: ``"dense"`` (an n × m matrix: tiny graphs, and the oracle), ``"tiled"`` (plain torch, any device),
            ``"numba"`` (CPU), ``"triton"`` (CUDA, float32) or ``"auto"``, which chooses by device, dtype and size.
        memory: Keeps the pairs of z between calls, so that the next call with the same z need not search for them. Only
            the ``"numba"`` back end uses it, since there the search is most of the work.

    Returns:
        The averages (n × p), of h's dtype.

    Raises:
        InputError: if an argument is not as described. Values are not checked while `torch.compile` traces the dense
            back end, or a GPU records the work.
    """
    check_arguments(z, h, keys)
    check_flag("loops", loops)
    if keys is None:
        first_key = 0
    elif first_key is not None:
        check_whole("first_key", first_key, most=len(keys) - len(z), why="keys has no more rows")
    threshold, tolerance = threshold_of(epsilon, z.dtype), UNIT_TOLERANCE[z.dtype]
    chosen = choose_backend(z, z if keys is None else keys, max(z.shape[1], h.shape[1]), backend)
    computed = computed_in(z.dtype)
    rows, values = z.to(computed), h.to(computed)
    key_rows = None if keys is None else keys.to(computed)
    if BACKENDS[chosen].traceable and torch.compiler.is_compiling():
        other = rows if key_rows is None else key_rows
        problem = Problem(rows, other, values, threshold, tolerance, first_key=first_key, loops=loops)
        return BACKENDS[chosen].forward(problem).out.to(h.dtype)
    if keys is not None or torch.compiler.is_compiling() or not BACKENDS[chosen].remembers_pairs:
        memory = None
    known = None if memory is None else memory.recall(rows, float(threshold), loops=loops)
    start, columns = (None, None) if known is None else (known.start, known.columns)
    operator: Any = _Eager.apply
    if torch.compiler.is_compiling():
        operator, threshold = torch.ops.gcnsl.reconnect, float(threshold)
    out, _, *pairs = operator(rows, key_rows, values, threshold, tolerance, first_key, loops, chosen, start, columns)
    if memory is not None and known is None:
        memory.keep(rows, float(threshold), Pairs(*pairs), loops=loops)
    averages: Tensor = out.to(h.dtype)
    return averages


def _forward(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, first_key: int | None, loops: bool,
    backend: str, known_start: Tensor | None = None, known_columns: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the fields of `Averages` and of its `Pairs`. Pairs that are known are not returned.

    Outside of `torch.compile`, the threshold may also be a scalar on the GPU.
    """
    problem = Problem.of(z, keys, h, threshold, tolerance, first_key, loops)
    if known_start is not None and known_columns is not None:
        problem = problem._replace(known=Pairs(known_start, known_columns, torch.tensor(int(Regime.LISTED))))
    if not BACKENDS[backend].checks_values and not is_recorded():
        check_values(problem)
    with torch_threads_for(problem.work):
        averages = BACKENDS[backend].forward(problem)
        if is_recorded():  # values can't be checked, but one that is not finite must not go unnoticed
            averages.out.add_(0 * z.sum())
    if problem.known is not None:  # an operator must not return its inputs
        averages = averages._replace(pairs=unlisted(z, Regime.LISTED))
    return averages.out, averages.degree, *averages.pairs


_reconnect = torch.library.custom_op("gcnsl::reconnect", _forward, mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))


@_reconnect.register_fake
def _(
    z: Tensor, keys: Any, h: Tensor, _: float, tolerance: float, first_key: Any, loops: bool, backend: str, *known: Any
) -> tuple[Tensor, ...]:
    out = h.new_empty(z.shape[0], h.shape[1])
    lists = BACKENDS[backend].lists_pairs and not any(part is not None for part in known)
    start = z.new_empty(z.shape[0] + 1 if lists else 0, dtype=torch.int64)
    columns = z.new_empty(capacity(z) if lists else 0, dtype=torch.int32)
    return out, z.new_empty(z.shape[0]), start, columns, torch.empty((), dtype=torch.int64, device="cpu")


def _backward(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, first_key: int | None, loops: bool,
    backend: str, out: Tensor, degree: Tensor, start: Tensor, columns: Tensor, regime_code: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return ∂L/∂z, ∂L/∂keys (empty if there are no keys) and ∂L/∂h."""
    problem = Problem.of(z, keys, h, threshold, tolerance, first_key, loops)
    averages = Averages(out, degree, Pairs(start, columns, regime_code))
    with torch_threads_for(problem.work):
        gradients = BACKENDS[backend].backward(problem, averages, grad.contiguous())
    return gradients.z, z.new_empty(0) if keys is None else gradients.keys, gradients.h


_reconnect_backward = torch.library.custom_op("gcnsl::reconnect_backward", _backward, mutates_args=())


@_reconnect_backward.register_fake
def _(z: Tensor, keys: Tensor | None, h: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    grad_keys = z.new_empty(0) if keys is None else torch.empty_like(keys, memory_format=torch.contiguous_format)
    return z.new_empty(z.shape), grad_keys, h.new_empty(h.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    z, keys, h, *ctx.options, known_start, known_columns = inputs
    out, degree, start, columns, regime_code = output
    if known_start is not None:
        start, columns = known_start, known_columns
    ctx.save_for_backward(z, keys, h, out, degree, start, columns, regime_code)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _differentiate(
    ctx: Any, grad: Tensor | None, *_: Any, backward: Any = torch.ops.gcnsl.reconnect_backward
) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 10
    z, keys, h, *averages = ctx.saved_tensors
    grad_z, grad_keys, grad_h = backward(z, keys, h, *ctx.options, *averages, grad)
    return grad_z, None if keys is None else grad_keys, grad_h, *(None,) * 7


_reconnect.register_autograd(_differentiate, setup_context=_save)


class _Eager(torch.autograd.Function):
    """The same without torch's table of operators, which takes as long as the work on a small graph."""

    setup_context = staticmethod(_save)

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        detached: list[Any] = [value.detach() if isinstance(value, Tensor) else value for value in inputs]
        return _forward(*detached)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return _differentiate(ctx, *grads, backward=_backward)
