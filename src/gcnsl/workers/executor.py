"""What carries out many runs at once, whether it is made of processes of this machine or of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from gcnsl.errors import GcnslError

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_SECONDS = 2.0
"""How often an executor looks whether there are more workers."""
_check: ContextVar[Callable[[], None] | None] = ContextVar("_check", default=None)


class WorkerLost(GcnslError):  # noqa: N818 - it says what happened
    """The worker that was at a run was killed, and so were those that tried it again, if any did."""


class Executor(AbstractContextManager["Executor"], ABC):
    """Workers that compute for this process, for a ``with`` statement; only this process stores what they find."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many runs can be under way at once. It may change, as workers come and go."""

    @abstractmethod
    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        """Give the workers a function, once, and return what starts it on an item and gives a future."""

    @abstractmethod
    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        """Wait at most so long until some futures are finished, and yield each with its result or ``WorkerLost``."""

    def each(self, call: Callable[[Item], Result], items: deque[Item]) -> Iterator[tuple[Item, Result | WorkerLost]]:
        """Call a function on each item of a queue, and yield the item and the result as soon as it is there.

        An item leaves the queue when a worker is free to begin with it. Until then the caller may remove it, and it may
        add others, for example when a result asks for them. What the function raises is raised here. If the caller
        stops, what is under way is given up.

        Args:
            call: Must be picklable. What it contains, such as a graph, is sent to each worker once. A worker may keep
                in it what further items can use.
            items: Each must be picklable. They and the results should be small: they travel for each run.
        """
        start = self._starter(call)
        under_way: dict[Any, Item] = {}
        try:
            while items or under_way:
                while items and len(under_way) < self.slots:
                    item = items.popleft()
                    under_way[start(item)] = item
                for future, result in self._finished(under_way, _LOOK_SECONDS):
                    yield under_way.pop(future), result
        finally:
            for future in under_way:
                future.cancel()


def check_wanted(*_: Any) -> None:
    """End this run if nobody waits for its result any more. To be called now and then, such as after each epoch.

    Outside of workers it does nothing.
    """
    check = _check.get()
    if check is not None:
        check()


def check_by(check: Callable[[], None]) -> None:
    """Let :func:`check_wanted` call this function from now on; it is to be called by a worker, before its runs."""
    _check.set(check)
