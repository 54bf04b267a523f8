# ruff: noqa: PLR0917 - the arguments of registered operators go by position
"""`reconnect`, the learned graph as an operator: o = Â* h, registered with torch and differentiable.

This file checks the arguments, chooses the back end and tells torch how the operator behaves (shapes for
`torch.compile`, derivative for autograd); the back ends do the work.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnsl.errors import InputError
from gcnsl.reconnection import checks, dense, tiled
from gcnsl.reconnection.pairs import PairMemory, Pairs, capacity, reserve_nothing

Backend = Literal["auto", "dense", "tiled", "numba", "triton"]
HAS_NUMBA = find_spec("numba") is not None
HAS_TRITON = find_spec("triton") is not None
DENSE_PAIRS = 256**2
"""Up to this many pairs the dense matrix is fastest on a CPU."""
TRITON_WIDTH = 256
"""The widest rows of z and h for which the kernels of the GPU have room on the chip."""


def reconnect(
    z: Tensor,
    h: Tensor,
    epsilon: float,
    *,
    keys: Tensor | None = None,
    backend: Backend = "auto",
    memory: PairMemory | None = None,
) -> Tensor:
    """Average h over the reconnected graph: o_i = Σ_j a_ij h_j / Σ_j a_ij, a_ij = z_i·z_j where that is ≥ ε, else 0.

    This is Â* H of the paper (section 3.2): z are the normalised rows x_i Q, so that z_i·z_j is their cosine
    similarity. Pairs with a similarity of exactly ε are kept. Only kept pairs are worked on; memory is O(n (p + q))
    for every ε. The result is differentiable in z, h and ``keys``; the derivative of the threshold itself, zero almost
    everywhere, is taken as zero.

    Args:
        z: Rows of norm 1 (n × q). A zero row keeps nothing: its output and its gradients are zero.
        h: What is averaged (n × p; m × p with ``keys``), of z's type and device. Half precision is computed in float32.
        epsilon: The smallest similarity that is kept, in (0, 1]. It is lowered to 1 less the rounding error of z's type
            (1e-6 for float32), so that a row is always connected to itself and to its duplicates.
        keys: Compare the rows of z with these rows of norm 1 (m × q) instead of with each other: new nodes, say, with
            the nodes of a trained graph. A row of z that is near none of them gets zero.
        backend: ``"dense"`` (an n × m matrix: tiny graphs, and the oracle), ``"tiled"`` (plain torch, any device),
            ``"numba"`` (CPU), ``"triton"`` (CUDA, float32) or ``"auto"``, which chooses by device, type and size.
        memory: Keeps the pairs of z between calls, so that another call with the same z need not look for them. Only
            the ``"numba"`` back end, where the search is most of the work, makes use of it.

    Returns:
        The averages (n × p), of h's type.

    Raises:
        InputError: if an argument is not as described. Where `torch.compile` traces the dense back end, values are not
            looked at.
    """
    checks.check_arguments(z, h, epsilon, keys)
    chosen = choose_backend(z, z if keys is None else keys, max(z.shape[1], h.shape[1]), backend)
    computed = checks.computed_in(z.dtype)
    tolerance = checks.UNIT_TOLERANCE[z.dtype]
    threshold = kept_from(epsilon, z.dtype)
    rows, values = z.to(computed), h.to(computed)
    key_rows = None if keys is None else keys.to(computed)
    if chosen == "dense":
        if not torch.compiler.is_compiling():
            _check_values(rows, key_rows, values, tolerance)
        out = dense.reconnect(rows, rows if key_rows is None else key_rows, values, threshold)
    else:
        arguments = rows, key_rows, values, threshold, tolerance, chosen
        if torch.compiler.is_compiling():
            out = torch.ops.gcnsl.reconnect(*arguments)[0]
        else:
            out = _run_eagerly(*arguments, memory)
    return out.to(h.dtype)


def kept_from(epsilon: float, dtype: torch.dtype) -> float:
    """Return the similarity from which on a pair is kept, given ε and the type z came in."""
    return min(epsilon, 1 - checks.ROUNDING[dtype])


def choose_backend(z: Tensor, keys: Tensor, width: int, wanted: Backend = "auto") -> str:
    """Return the back end to use, for rows of at most ``width`` entries: the one place where that is decided."""
    device = z.device.type
    triton_can = HAS_TRITON and checks.computed_in(z.dtype) == torch.float32 and width <= TRITON_WIDTH
    if wanted not in get_args(Backend):
        raise InputError(f"backend({wanted!r}) must be one of {', '.join(get_args(Backend))}")
    if wanted == "numba" and (device != "cpu" or not HAS_NUMBA):
        raise InputError(f"backend('numba') needs tensors on the CPU (z is on {z.device}) and the package numba")
    if wanted == "triton" and (not triton_can or (device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1")):
        raise InputError(
            f"backend('triton') needs a GPU (z is on {z.device}), float32 or half precision (z has {z.dtype}), "
            f"rows of at most {TRITON_WIDTH} entries (there are {width}), and the package triton"
        )
    if wanted != "auto":
        return wanted
    if device == "cpu" and z.shape[0] * keys.shape[0] <= DENSE_PAIRS:
        return "dense"
    if device == "cpu" and HAS_NUMBA:
        return "numba"
    if device == "cuda" and triton_can:
        return "triton"
    return "tiled"


def _forward(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return o (n × p), the degrees (n) and the fields of `Pairs`."""
    z, h, keys = _as_backends_want(z, h, keys)
    if backend == "triton":
        from gcnsl.reconnection import triton_backend

        out, degree, pairs = triton_backend.forward(z, keys, h, threshold, tolerance)
        return out, degree, *pairs
    _check_values(z, None if keys is z else keys, h, tolerance)
    if backend == "numba":
        from gcnsl.reconnection import numba_backend

        out, degree, pairs = numba_backend.forward(z, keys, h, threshold)
        return out, degree, *pairs
    return *tiled.forward(z, keys, h, threshold), *reserve_nothing(z)


_reconnect = torch.library.custom_op("gcnsl::reconnect", _forward, mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))


@_reconnect.register_fake
def _(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str
) -> tuple[Tensor, ...]:
    out = h.new_empty(z.shape[0], h.shape[1])
    lists = backend != "tiled"
    start = z.new_empty(z.shape[0] + 1 if lists else 0, dtype=torch.int64)
    columns = z.new_empty(capacity(z, z.shape[0]) if lists else 0, dtype=torch.int32)
    return out, z.new_empty(z.shape[0]), start, columns, torch.empty((), dtype=torch.int64, device="cpu")


def _backward(
    grad: Tensor, z: Tensor, keys: Tensor | None, h: Tensor, out: Tensor, degree: Tensor,
    start: Tensor, columns: Tensor, regime: Tensor, threshold: float, backend: str,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return ∂L/∂z, ∂L/∂keys (empty where there are none) and ∂L/∂h."""
    grad = grad.contiguous()
    z, h, key_rows = _as_backends_want(z, h, keys)
    pairs = Pairs(start, columns, regime)
    if backend == "triton":
        from gcnsl.reconnection import triton_backend

        grads = triton_backend.backward(grad, z, key_rows, h, out, degree, pairs, threshold)
    elif backend == "numba":
        from gcnsl.reconnection import numba_backend

        grads = numba_backend.backward(grad, z, key_rows, h, out, degree, pairs, threshold)
    else:
        grads = tiled.backward(grad, z, key_rows, h, out, degree, threshold)
    grad_z, grad_keys, grad_h = grads
    return grad_z, z.new_empty(0) if keys is None else grad_keys, grad_h


_reconnect_backward = torch.library.custom_op("gcnsl::reconnect_backward", _backward, mutates_args=())


@_reconnect_backward.register_fake
def _(grad: Tensor, z: Tensor, keys: Tensor | None, h: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    grad_keys = z.new_empty(0) if keys is None else torch.empty_like(keys, memory_format=torch.contiguous_format)
    return z.new_empty(z.shape), grad_keys, h.new_empty(h.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    z, keys, h, ctx.threshold, _, ctx.backend = inputs
    ctx.save_for_backward(z, keys, h, *output)
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _derivative(backward: Callable[..., tuple[Tensor, Tensor, Tensor]]) -> Callable[..., tuple[Tensor | None, ...]]:
    """Return what autograd calls, given the function that computes the gradients."""

    def differentiate(ctx: Any, grad: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 6
        saved = ctx.saved_tensors
        grad_z, grad_keys, grad_h = backward(grad, *saved, threshold=ctx.threshold, backend=ctx.backend)
        return grad_z, None if saved[1] is None else grad_keys, grad_h, None, None, None

    return differentiate


_reconnect.register_autograd(_derivative(_reconnect_backward), setup_context=_save)


def _run_eagerly(
    z: Tensor, keys: Tensor | None, h: Tensor, threshold: float, tolerance: float, backend: str,
    memory: PairMemory | None,
) -> Tensor:  # fmt: skip
    """The same operator with the same derivative, without the way through torch's table of operators.

    On a small graph that way takes longer than the work.
    """
    remembers = memory is not None and backend == "numba" and keys is None
    known = memory.recall(z, threshold) if memory is not None and remembers else None
    out, _, *pairs = _Eager.apply(z, keys, h, threshold, tolerance, backend, known)  # type: ignore[no-untyped-call]
    if memory is not None and remembers:
        memory.keep(z, threshold, Pairs(*pairs))
    return cast("Tensor", out)


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        *arguments, known = inputs
        if known is None:
            return _forward(*arguments)
        z, _, h, threshold, *_ = arguments
        return _average_over_known(z, h, threshold, known)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _save(ctx, inputs[:-1], output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        return *_derivative(_backward)(ctx, *grads), None


def _average_over_known(z: Tensor, h: Tensor, threshold: float, known: Pairs) -> tuple[Tensor, ...]:
    """`_forward` of a z whose pairs are known: it was checked when they were found."""
    from gcnsl.reconnection import numba_backend

    checks.check_finite("h", h)
    z, h, _ = _as_backends_want(z, h, None)
    out, degree, pairs = numba_backend.forward(z, z, h, threshold, known)
    return out, degree, *pairs


def _as_backends_want(z: Tensor, h: Tensor, keys: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return z, h and the keys, contiguous: the keys are z itself where there are none, and only there."""
    z = z.contiguous()
    return z, h.contiguous(), z if keys is None else keys.contiguous().detach()


def _check_values(z: Tensor, keys: Tensor | None, h: Tensor, tolerance: float) -> None:
    checks.check_unit_rows("z", z, tolerance)
    if keys is not None:
        checks.check_unit_rows("keys", keys, tolerance)
    checks.check_finite("h", h)
