"""No workers: the process that asks does the work itself, one run after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from typing import Any

from gcnsl.workers.executor import Executor, Item, Result


class ThisProcess(Executor):
    """Worth it where other processes would take longer to start than the work takes; no run can be given up."""

    @property
    def slots(self) -> int:
        """One run at a time."""
        return 1

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        self._call, self._items = call, dict[Any, Any]()

        def start(item: Item) -> Any:
            future: Future[Result] = Future()
            self._items[future] = item
            return future

        return start

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        for future in futures:
            yield future, self._call(self._items.pop(future))

    def __exit__(self, *_: object) -> None:
        """There is nobody to send home."""
