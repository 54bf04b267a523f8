"""How many threads a piece of work gets.

torch, NumPy and scikit-learn share even small work among threads that wait for each other in busy loops. Where another
process has one of the cores, every such wait can last until the scheduler takes the core away from it, some
milliseconds, and calls take 40 to 200 times as long. Our own calls therefore work in one thread unless there is much to
do. How many threads they take depends on the size of the work alone, so that the same input gives the same bits.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController

LARGE = 1 << 29
"""Multiply-adds from which work is shared among threads: half a second if they are those of sparse products."""
_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)


def allowed_threads() -> int:
    """How many threads the caller of the package lets torch use, whatever the block that we are in makes of it."""
    allowed = _allowed.get()
    return torch.get_num_threads() if allowed is None else allowed


@contextmanager
def torch_threads_for(work: int) -> Iterator[None]:
    """In this block torch works in one thread, or in all that it may use if there are many multiply-adds to do."""
    before, allowed = torch.get_num_threads(), allowed_threads()
    token = _allowed.set(allowed)
    torch.set_num_threads(allowed if work >= LARGE else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _allowed.reset(token)


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """The same for torch, NumPy, SciPy and scikit-learn."""
    with torch_threads_for(work):
        if work >= LARGE:
            yield
            return
        pools = _pools(len(sys.modules))
        _one_blas_thread.begin(pools)
        try:
            with pools.limit(limits=1, user_api="openmp"):  # holds for the calling thread only
                yield
        finally:
            _one_blas_thread.end()


class _OneBlasThread:
    """Limits NumPy's and SciPy's linear algebra to one thread from the first ``begin`` to the last ``end``.

    These limits hold for all Python threads, so two of them must not restore what the other has set.
    """

    def __init__(self) -> None:
        self._lock, self._holders, self._limit = threading.Lock(), 0, None

    def begin(self, pools: Any) -> None:
        with self._lock:
            if self._holders == 0:
                self._limit = pools.limit(limits=1, user_api="blas")
            self._holders += 1

    def end(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._limit is not None:
                self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:
    """The thread pools of all loaded libraries, looked for again when further modules have been imported."""
    return ThreadpoolController()
