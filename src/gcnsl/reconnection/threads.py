"""Run kernels that release the interpreter's lock on ranges of rows, in as many threads as torch may use.

No thread outlives its work, so a process can be forked afterwards. The result does not depend on the number of threads
as long as the result of a kernel does not depend on the bounds of its range.
"""

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gcnsl.cores import allowed_threads

SHARES_PER_THREAD = 4
WORK_PER_SHARE = 1 << 23
"""Multiply-adds that are worth handing to another thread: about 200 µs, a few times the cost of starting a thread."""
LONGEST_SHARE = 1 << 32
"""Multiply-adds after which a share ends, about half a second if the rows do not fit the cache: a thread that works
does not answer Ctrl-C."""

Result = TypeVar("Result")


def shares(work: int) -> npt.NDArray[np.float64]:
    """Return bounds from 0 to 1 that cut ``work`` multiply-adds into a few shares per thread, so that none idles."""
    return np.linspace(0, 1, max(1, min(_usual_shares(), work // WORK_PER_SHARE), work // LONGEST_SHARE) + 1)


def for_rows(work: Callable[[int, int], None], n: int, width: int) -> None:
    """Call work(begin, end) on shares of n rows; a row takes ``width`` multiply-adds."""
    in_threads(lambda _, begin, end: work(begin, end), (n * shares(n * width)).astype(np.int64).tolist())


def interruptible(call: Callable[[], Result], work: int) -> Result:
    """Make one call of ``work`` multiply-adds; if that is long, in another thread, so that Ctrl-C is answered."""
    return in_threads(lambda *_: call(), [0, 1], caller_works=work < LONGEST_SHARE)[0]


def in_threads(
    work: Callable[[int, int, int], Result], bounds: Sequence[int], *, caller_works: bool | None = None
) -> list[Result]:
    """Call work(part, begin, end) in threads, for each pair of consecutive bounds; return the results in order.

    The calling thread works too, and in the end waits only for parts that other threads have begun. On a busy machine
    it may do everything itself before another thread gets a processor. If there is so much work that it is cut into
    more parts than usual, the calling thread only waits (``caller_works``), so that it answers Ctrl-C at once. After an
    error or Ctrl-C no part is begun.
    """
    n_parts = len(bounds) - 1
    caller_works = n_parts <= _usual_shares() if caller_works is None else caller_works
    waiting = deque(enumerate(pairwise(bounds)))
    finished: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()

    def take_turns() -> None:
        while waiting:
            try:
                part, (begin, end) = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                finished.put((part, work(part, begin, end), None))
            except BaseException as error:  # raised again in the calling thread
                waiting.clear()
                finished.put((part, None, _unwrapped(error)))

    for _ in range(min(allowed_threads(), n_parts) - caller_works):
        start_new_thread(take_turns, ())  # threading.Thread would wait until the thread runs
    results: dict[int, Any] = {}
    try:
        if caller_works:
            take_turns()
        for _ in range(n_parts):
            part, result, error = finished.get()
            if error is not None:
                raise error
            results[part] = result
    finally:
        waiting.clear()
    return [results[part] for part in range(n_parts)]


def _usual_shares() -> int:
    return allowed_threads() * SHARES_PER_THREAD


def _unwrapped(error: BaseException) -> BaseException:
    """Return the error, or the ``KeyboardInterrupt`` that numba has wrapped in a ``SystemError``."""
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return error
