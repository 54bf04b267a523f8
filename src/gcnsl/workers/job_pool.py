"""Calls in other processes, each with a time limit; one that exceeds it is killed and not waited for."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from joblib.externals.loky import ProcessPoolExecutor
from typing_extensions import Self

from gcnsl.workers.processes import Worker

Context = TypeVar("Context")
Item = TypeVar("Item")
Result = TypeVar("Result")
warnings.filterwarnings("ignore", "A worker stopped while some jobs were given to the executor", UserWarning)
_here: dict[str, Any] = {}
"""In a worker: the function to call, and the context of all calls."""


class TooSlow(Exception):  # noqa: N818 - it says what happened
    """A call exceeded its time limit."""


@dataclass
class Done(Generic[Item, Result]):
    """A call that has ended: its item, and its result or the exception that it raised."""

    item: Item
    result: Result | None = None
    error: BaseException | None = None


@dataclass(eq=False)
class _Slot(Generic[Item]):
    """A process of its own, so that it can be killed alone, and what it is doing."""

    executor: Any
    ready: Future[Any]
    item: Item | None = None
    future: Future[Any] | None = None
    seconds: float = 0.0
    deadline: float = math.inf


class JobPool(Generic[Context, Item, Result]):
    """Processes that call ``call(context, item)`` on one item after another.

    Args:
        call: A function that can be imported.
        context: What all calls share; it is sent to each process once.
        processes: How many. The cores are shared among them.
    """

    def __init__(self, call: Callable[[Context, Item], Result], context: Context, *, processes: int) -> None:
        self._shared, self._worker = (call, context), Worker.one_of(processes)
        self._slots: list[_Slot[Item]] = [self._slot() for _ in range(processes)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for slot in self._slots:
            slot.executor.shutdown(wait=True, kill_workers=True)

    @property
    def has_room(self) -> bool:
        """Whether a process is idle."""
        return any(slot.item is None for slot in self._slots)

    @property
    def running(self) -> list[Item]:
        """The items that are being worked on."""
        return [slot.item for slot in self._slots if slot.item is not None]

    def submit(self, item: Item, *, seconds: float) -> None:
        """Give an item to an idle process, which is killed if it takes longer than so many seconds, once started."""
        slot = next(slot for slot in self._slots if slot.item is None)
        slot.item, slot.seconds, slot.deadline = item, seconds, math.inf
        slot.future = slot.executor.submit(_call, item)

    def wait(self, seconds: float) -> list[Done[Item, Result]]:
        """The calls that have ended since the last look; waits for one of them, at most so many seconds."""
        busy = [slot for slot in self._slots if slot.future is not None]
        for slot in busy:
            if slot.deadline == math.inf and slot.ready.done():
                slot.deadline = time.monotonic() + slot.seconds
        first = min((slot.deadline for slot in busy), default=0.0) - time.monotonic()
        pending = [slot.future if slot.ready.done() else slot.ready for slot in busy]
        wait([future for future in pending if future], max(0.0, min(seconds, first)), FIRST_COMPLETED)
        return [done for slot in busy if (done := self._look(slot)) is not None]

    def _look(self, slot: _Slot[Item]) -> Done[Item, Result] | None:
        """What has ended in a slot, which is then free; its process is replaced if it had to be killed, or died."""
        assert slot.item is not None
        assert slot.future is not None
        done: Done[Item, Result] = Done(slot.item)
        if slot.future.done():
            done.error = slot.future.exception()
            done.result = None if done.error else slot.future.result()
        elif time.monotonic() >= slot.deadline:
            done.error = TooSlow()
        else:
            return None
        slot.item = slot.future = None
        if isinstance(done.error, TooSlow | BrokenProcessPool):
            slot.executor.shutdown(wait=True, kill_workers=True)
            self._slots[self._slots.index(slot)] = self._slot()
        return done

    def _slot(self) -> _Slot[Item]:
        start = (self._worker, *self._shared)
        executor = ProcessPoolExecutor(1, initializer=_begin, initargs=start, env=self._worker.environment)
        return _Slot(executor, executor.submit(os.getpid))


def _begin(worker: Worker, call: Callable[..., Any], context: Any) -> None:
    worker.begin()
    _here.update(call=call, context=context)

    def watch() -> None:
        while True:
            worker.stop_if_orphaned()
            time.sleep(1)

    threading.Thread(target=watch, daemon=True).start()


def _call(item: Any) -> Any:
    return _here["call"](_here["context"], item)
