"""What carries out many runs: this process, others of this machine, or a cluster, all behind one interface."""

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, Generic, TypeVar

from gcnsl.errors import GcnslError

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_SECONDS = 2.0
"""How often an executor looks whether there are more workers."""
_check: ContextVar[Callable[..., None] | None] = ContextVar("_check", default=None)


class WorkerLost(GcnslError):  # noqa: N818 - it says what happened
    """The worker that was at a run was killed, and so were those that tried it again, if any did."""


class TooSlow(WorkerLost):
    """A run took longer than it was allowed to, and was given up."""


class Executor(AbstractContextManager["Executor"], ABC):
    """Workers that compute for this process, for a ``with`` statement; only this process stores what they find."""

    gives_up_at_once: bool = False
    """Whether a run can be stopped at any moment, and not only where it calls :func:`check_wanted`."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many runs can be under way at once. It may change, as workers come and go."""

    @property
    def ready(self) -> int:
        """How many can be under way now: fewer, as long as workers are starting."""
        return self.slots

    @abstractmethod
    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        """Send the workers a function, once, and return another that starts it on an item and returns a future."""

    @abstractmethod
    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        """Wait at most so long until some futures are finished, and yield each with its result or ``WorkerLost``."""

    def _give_up(self, future: Any) -> None:
        """Stop a run, as soon as that is possible; nobody waits for its result."""
        future.cancel()

    def with_processes(self, jobs: int) -> AbstractContextManager["Executor"]:
        """These workers or, instead of none, so many processes of this machine."""
        return nullcontext(self)

    def each(self, call: Callable[[Item], Result], items: deque[Item]) -> Iterator[tuple[Item, Result | WorkerLost]]:
        """Call a function on each item of a queue, and yield the item and the result as soon as it is there.

        An item leaves the queue when a worker is free to begin with it; until then the caller may remove it, or add
        others. What the function raises is raised here. If the caller stops, what is under way is given up. All must be
        picklable: the function is sent to each worker once, with what it contains, such as a graph, and items and
        results travel for each run.
        """
        with Crew(self, call) as crew:
            while items or crew.running:
                while items and crew.has_room:
                    crew.submit(items.popleft())
                yield from crew.wait()


class Crew(AbstractContextManager["Crew[Item, Result]"], Generic[Item, Result]):
    """The workers of an executor that have been given a function, see :meth:`Executor.each`.

    When the ``with`` statement is left, what is under way is given up.
    """

    def __init__(self, executor: Executor, call: Callable[[Item], Result]) -> None:
        self._executor, self._start = executor, executor._starter(call)
        self._under_way: dict[Any, tuple[Item, float]] = {}

    @property
    def running(self) -> list[Item]:
        """The items that are being worked on."""
        return [item for item, _ in self._under_way.values()]

    @property
    def has_room(self) -> bool:
        """Whether a worker is free."""
        return len(self._under_way) < self._executor.ready

    def submit(self, item: Item, *, seconds: float = math.inf) -> None:
        """Give an item to a free worker, for so many seconds at most."""
        self._under_way[self._start(item)] = item, time.monotonic() + seconds

    def wait(self, seconds: float = _LOOK_SECONDS) -> Iterator[tuple[Item, Result | WorkerLost]]:
        """The items that are finished, with their results; waits for the first at most so many seconds.

        If there are none and no worker is free, it also returns as soon as one is.
        """
        first = min((deadline for _, deadline in self._under_way.values()), default=math.inf) - time.monotonic()
        for future, result in self._executor._finished(list(self._under_way), max(0.0, min(seconds, first))):
            yield self._under_way.pop(future)[0], result
        late = [future for future, (_, deadline) in self._under_way.items() if time.monotonic() >= deadline]
        for future in late:
            self._executor._give_up(future)
            yield self._under_way.pop(future)[0], TooSlow("it took too long")

    def __exit__(self, *_: object) -> None:
        for future in self._under_way:
            self._executor._give_up(future)


class ThisProcess(Executor):
    """No workers: the process that asks does the work itself, one run after the other, and can't give one up.

    Args:
        on_epoch: Called with the item, and with the epoch, after each epoch of its training.
    """

    slots = 1

    def __init__(self, on_epoch: Callable[[Any, Any], None] | None = None) -> None:
        self._on_epoch = on_epoch

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        return lambda item: partial(self._carry_out, call, item)  # when its result is asked for

    def _carry_out(self, call: Callable[[Item], Result], item: Item) -> Result:
        before = _check.set(self._on_epoch and partial(self._on_epoch, item))
        try:
            return call(item)
        finally:
            _check.reset(before)

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        for future in futures:
            yield future, future()

    def _give_up(self, future: Any) -> None:
        """It has not begun."""

    def with_processes(self, jobs: int) -> AbstractContextManager[Executor]:
        """So many processes of this machine."""
        from gcnsl.runs.processes import Processes  # which is an executor, too

        return Processes(jobs)

    def __exit__(self, *_: object) -> None:
        """There are no workers to end."""


HERE = ThisProcess()


def check_wanted(*told: Any) -> None:
    """End this run if nobody waits for its result any more. To be called now and then, such as with each epoch.

    Outside of workers it does nothing, unless :class:`ThisProcess` passes on what is told.
    """
    check = _check.get()
    if check is not None:
        check(*told)


def check_by(check: Callable[..., None]) -> None:
    """Let :func:`check_wanted` call this function from now on; a worker sets it before its runs."""
    _check.set(check)
