# ruff: noqa: PLR0917 - the arguments of registered operators go by position
"""`reconnect`, the learned graph as an operator: o = Â* h, registered with torch and differentiable.

This file checks the arguments, calls the back end and tells torch how the operator behaves (shapes for `torch.compile`,
derivative for autograd); the back ends do the work.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnsl.reconnection.arguments import UNIT_TOLERANCE, check_arguments, check_values, computed_in, threshold_of
from gcnsl.reconnection.backends import BACKENDS, BackendName, choose_backend
from gcnsl.reconnection.pairs import PairMemory, Pairs, capacity
from gcnsl.reconnection.problem import Averages, Problem


def reconnect(
    z: Tensor,
    h: Tensor,
    epsilon: float,
    *,
    keys: Tensor | None = None,
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
        epsilon: The smallest similarity that is kept, in (0, 1]. It is lowered to 1 minus the rounding error of z's
            dtype (1e-6 for float32), so that a row is always connected to itself and to its duplicates.
        keys: Compare the rows of z with these rows of norm 1 (m × q) instead of with each other, for instance new nodes
            with the nodes of a trained graph. A row of z without a similar key gets zero.
        backend: ``"dense"`` (an n × m matrix: tiny graphs, and the oracle), ``"tiled"`` (plain torch, any device),
            ``"numba"`` (CPU), ``"triton"`` (CUDA, float32) or ``"auto"``, which chooses by device, dtype and size.
        memory: Keeps the pairs of z between calls, so that the next call with the same z need not search for them. Only
            the ``"numba"`` back end uses it, since there the search is most of the work.

    Returns:
        The averages (n × p), of h's dtype.

    Raises:
        InputError: if an argument is not as described. While `torch.compile` traces the dense back end, values are not
            checked.
    """
    check_arguments(z, h, keys)
    threshold, tolerance = threshold_of(epsilon, z.dtype), UNIT_TOLERANCE[z.dtype]
    chosen = choose_backend(z, z if keys is None else keys, max(z.shape[1], h.shape[1]), backend)
    computed = computed_in(z.dtype)
    rows, values = z.to(computed), h.to(computed)
    key_rows = None if keys is None else keys.to(computed)
    if BACKENDS[chosen].backward is None:
        problem = Problem(rows, rows if key_rows is None else key_rows, values, threshold, tolerance)
        if not torch.compiler.is_compiling():
            check_values(problem)
        return BACKENDS[chosen].forward(problem).out.to(h.dtype)
    options = rows, key_rows, values, threshold, tolerance, chosen
    out: Tensor
    if torch.compiler.is_compiling():
        out = torch.ops.gcnsl.reconnect(*options)[0]
    else:
        memory = memory if keys is None and BACKENDS[chosen].remembers_pairs else None
        known = None if memory is None else memory.recall(rows, threshold)
        out, pairs = _Eager.apply(*options, known)  # type: ignore[no-untyped-call]
        if memory is not None and known is None:
            memory.keep(rows, threshold, pairs)
    return out.to(h.dtype)


def _solve(problem: Problem, backend: str) -> Averages:
    if not BACKENDS[backend].checks_values:
        check_values(problem)
    return BACKENDS[backend].forward(problem)


def _differentiate(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str,
    out: Tensor, degree: Tensor, start: Tensor, columns: Tensor, regime_code: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return ∂L/∂z, ∂L/∂keys (empty if there are no keys) and ∂L/∂h."""
    backward = BACKENDS[backend].backward
    assert backward is not None
    averages = Averages(out, degree, Pairs(start, columns, regime_code))
    gradients = backward(Problem.of(z, keys, h, threshold, tolerance), averages, grad.contiguous())
    return gradients.z, z.new_empty(0) if keys is None else gradients.keys, gradients.h


class _Eager(torch.autograd.Function):
    """The operator for calls that are not compiled, around torch's table of operators.

    It saves 0.1 ms per step: 1.16× at n = 183, 1.05× at n = 2,708 (``bench/regimes.py``, 2 CPU cores).
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str,
        known: Pairs | None,
    ) -> tuple[Tensor, Pairs]:  # fmt: skip
        out, degree, pairs = _solve(Problem.of(z, keys, h, threshold, tolerance)._replace(known=known), backend)
        ctx.options = threshold, tolerance, backend
        ctx.save_for_backward(z, keys, h, out, degree, *pairs)
        return out, pairs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        z, keys, h, *averages = ctx.saved_tensors
        arguments = z, keys, h, *ctx.options, *averages, grads[0]
        grad_z, grad_keys, grad_h = _differentiate(*arguments)
        return grad_z, None if keys is None else grad_keys, grad_h, None, None, None, None


@torch.library.custom_op("gcnsl::reconnect", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def _reconnect(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The operator for `torch.compile`: returns the fields of `Averages` and of its `Pairs`."""
    out, degree, pairs = _solve(Problem.of(z, keys, h, threshold, tolerance), backend)
    return out, degree, *pairs


@_reconnect.register_fake
def _(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str
) -> tuple[Tensor, ...]:
    out = h.new_empty(z.shape[0], h.shape[1])
    lists = BACKENDS[backend].lists_pairs
    start = z.new_empty(z.shape[0] + 1 if lists else 0, dtype=torch.int64)
    columns = z.new_empty(capacity(z, z.shape[0]) if lists else 0, dtype=torch.int32)
    return out, z.new_empty(z.shape[0]), start, columns, torch.empty((), dtype=torch.int64, device="cpu")


_reconnect_backward = torch.library.custom_op("gcnsl::reconnect_backward", _differentiate, mutates_args=())


@_reconnect_backward.register_fake
def _(z: Tensor, keys: Tensor | None, h: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    grad_keys = z.new_empty(0) if keys is None else torch.empty_like(keys, memory_format=torch.contiguous_format)
    return z.new_empty(z.shape), grad_keys, h.new_empty(h.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    z, keys, h, *ctx.options = inputs
    ctx.save_for_backward(z, keys, h, *output)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * 6
    z, keys, h, *averages = ctx.saved_tensors
    grad_z, grad_keys, grad_h = _reconnect_backward(z, keys, h, *ctx.options, *averages, grad)
    return grad_z, None if keys is None else grad_keys, grad_h, None, None, None


_reconnect.register_autograd(_backward, setup_context=_save)
