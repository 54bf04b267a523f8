"""Functions compiled by numba, cached on disk where that is possible."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(**options: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function on its first call, to run without the interpreter's lock.

    The machine code is cached on disk. If numba finds no folder for it that is writable, each process compiles anew.

    Args:
        options: Further arguments of ``numba.njit``, e.g. ``fastmath``.
    """

    def compile_later(function: Kernel) -> Kernel:
        try:
            return cast(Kernel, numba.njit(nogil=True, cache=True, **options)(function))
        except RuntimeError:  # no writable folder for the cache
            return cast(Kernel, numba.njit(nogil=True, **options)(function))

    return compile_later
