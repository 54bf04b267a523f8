"""Run kernels that release the interpreter's lock on ranges of rows, in as many threads as torch uses.

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
import torch

SHARES_PER_THREAD = 4
WORK_PER_SHARE = 1 << 23
"""Multiply-adds that are worth handing to another thread: about 200 µs, a few times the cost of starting a thread."""
LONGEST_SHARE = 1 << 33
"""Multiply-adds after which a share ends, about 0.2 s: until then, Ctrl-C is not answered."""

Result = TypeVar("Result")


def shares(work: int) -> npt.NDArray[np.float64]:
    """Return bounds from 0 to 1 that cut ``work`` multiply-adds into a few shares per thread, so that none idles."""
    most = torch.get_num_threads() * SHARES_PER_THREAD
    return np.linspace(0, 1, max(1, min(most, work // WORK_PER_SHARE), work // LONGEST_SHARE) + 1)


def for_rows(work: Callable[[int, int], None], n: int, width: int) -> None:
    """Call work(begin, end) on shares of n rows; a row takes ``width`` multiply-adds."""
    in_threads(lambda _, begin, end: work(begin, end), (n * shares(n * width)).astype(np.int64).tolist())


def in_threads(work: Callable[[int, int, int], Result], bounds: Sequence[int]) -> list[Result]:
    """Call work(part, begin, end) in threads, for each pair of consecutive bounds; return the results in order.

    The calling thread works too, and in the end waits only for parts that other threads have begun. On a busy machine
    it may do everything itself before another thread gets a processor. After an error or Ctrl-C no part is begun.
    """
    n_parts = len(bounds) - 1
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
                finished.put((part, None, error))

    for _ in range(min(torch.get_num_threads(), n_parts) - 1):
        start_new_thread(take_turns, ())  # threading.Thread would wait until the thread runs
    results: dict[int, Any] = {}
    try:
        take_turns()
        for _ in range(n_parts):
            part, result, error = finished.get()
            if error is not None:
                raise error
            results[part] = result
    finally:
        waiting.clear()
    return [results[part] for part in range(n_parts)]
