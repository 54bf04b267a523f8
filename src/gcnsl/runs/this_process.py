"""No workers: the process that asks does the work itself, one run after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from gcnsl.runs.executor import Executor, Item, Result


class ThisProcess(Executor):
    """Worth it where other processes would take longer to start than the work takes; no run can be given up."""

    @property
    def slots(self) -> int:
        """One run at a time."""
        return 1

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        return lambda item: partial(call, item)  # carried out when its result is asked for

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        for future in futures:
            yield future, future()

    def _give_up(self, future: Any) -> None:
        """It has not begun."""

    def __exit__(self, *_: object) -> None:
        """There are no workers to end."""
