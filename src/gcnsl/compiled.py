"""Functions that numba compiles when they are first called."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function without the interpreter's lock.

    The compiled code is cached on disk, except where numba finds no folder that it can write to.

    Args:
        **options: Further options of ``numba.njit``.
    """

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(nogil=True, cache=True, **options)(function))
        except RuntimeError:  # no folder for the cache
            return cast(Function, numba.njit(nogil=True, **options)(function))

    return decorate
