"""The table of back ends, and the choice among them.

Each back end has the same three functions: to add one, write them and add a line to `BACKENDS`.
"""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from gcnsl.checks import check_choice
from gcnsl.errors import ArgumentError
from gcnsl.reconnection import dense, tiled
from gcnsl.reconnection.arguments import computed_in
from gcnsl.reconnection.problem import Averages, Gradients, Problem

BackendName = Literal["auto", "dense", "tiled", "numba", "triton"]
HAS_TRITON = find_spec("triton") is not None
DENSE_PAIRS = 256**2
"""Up to this many pairs, ``"auto"`` takes the dense matrix on a CPU."""
TRITON_WIDTH = 256
"""The widest rows of z and h that fit the on-chip memory of a GPU."""


class Backend(NamedTuple):
    """The functions of a back end and what the operator has to know about it."""

    forward: Callable[[Problem], Averages]
    backward: Callable[[Problem, Averages, Tensor], Gradients]
    """Return the gradients, given ∂L/∂o."""
    find: Callable[[Problem], Tensor]
    """Return the kept pairs (2 × E, int64), sorted by row, then column."""
    unmet: Callable[[Tensor, int], str] = lambda _, __: ""
    """Return what is missing to run with this z and rows of at most this width, or an empty string."""
    lists_pairs: bool = False
    """Whether the forward pass lists the kept pairs for the backward pass."""
    remembers_pairs: bool = False
    """Whether ``Problem.known`` saves a search."""
    traceable: bool = False
    """Whether `torch.compile` can trace the forward pass, and hence also differentiate it."""
    checks_values: bool = False
    """Whether the forward pass checks the values of z, keys and h itself."""


def _needs_cpu(z: Tensor, _: int) -> str:
    return "" if z.device.type == "cpu" else f"needs tensors on the CPU (z is on {z.device})"


def _needs_gpu(z: Tensor, width: int) -> str:
    runs_here = z.device.type == "cuda" or (z.device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    if HAS_TRITON and runs_here and computed_in(z.dtype) == torch.float32 and width <= TRITON_WIDTH:
        return ""
    return (
        f"needs a GPU (z is on {z.device}), float32 or half precision (z has {z.dtype}), "
        f"rows of at most {TRITON_WIDTH} entries (there are {width}), and the package triton"
    )


def _imported_later(module: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return the three functions of a module that is imported on the first call: numba and triton take long to load."""

    def call(function: str, *arguments: Any) -> Any:
        return getattr(import_module(f"gcnsl.reconnection.{module}"), function)(*arguments)

    return partial(call, "forward"), partial(call, "backward"), partial(call, "find")


BACKENDS = {
    "dense": Backend(dense.forward, tiled.backward, tiled.find, traceable=True),
    "numba": Backend(*_imported_later("numba_backend"), unmet=_needs_cpu, lists_pairs=True, remembers_pairs=True),
    "triton": Backend(*_imported_later("triton_backend"), unmet=_needs_gpu, lists_pairs=True, checks_values=True),
    "tiled": Backend(tiled.forward, tiled.backward, tiled.find),
}
"""All back ends by name. ``"auto"`` takes dense for tiny graphs on a CPU, else the first other one that can run."""


def choose_backend(z: Tensor, keys: Tensor, width: int, wanted: BackendName = "auto") -> str:
    """Return the name of the back end to use, for rows of at most ``width`` entries."""
    check_choice("backend", wanted, get_args(BackendName))
    if wanted != "auto":
        if unmet := BACKENDS[wanted].unmet(z, width):
            raise ArgumentError("backend", wanted, unmet)
        return wanted
    if z.device.type == "cpu" and z.shape[0] * keys.shape[0] <= DENSE_PAIRS:
        return "dense"
    return next(name for name, backend in BACKENDS.items() if name != "dense" and not backend.unmet(z, width))
