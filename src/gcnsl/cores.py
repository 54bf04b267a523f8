"""How many threads a piece of work gets.

torch, NumPy and scikit-learn divide even small tasks among threads, which wait for each other in busy loops. While
another process occupies one of the cores, such a wait can last until the scheduler interrupts that process. This takes
some milliseconds, and makes calls 40 to 200 times slower. The package therefore works in one thread unless there is
much to do. The number of threads depends on the size of the work alone, so that the same input gives the same bits.
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
"""Number of multiply-adds from which work is shared among threads. Sparse products need half a second for as many."""
_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)


def allowed_threads() -> int:
    """The number of threads that torch may use: what was set outside of all blocks of :func:`torch_threads_for`."""
    allowed = _allowed.get()
    return torch.get_num_threads() if allowed is None else allowed


@contextmanager
def torch_threads_for(work: int) -> Iterator[None]:
    """Let torch work in one thread in this block, or in all allowed ones for :data:`LARGE` multiply-adds or more."""
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
    """Like :func:`torch_threads_for`, but also for NumPy, SciPy and scikit-learn."""
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
