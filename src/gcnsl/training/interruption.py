"""Ctrl-C and SIGTERM: they interrupt at once, except where something has to be finished first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from typing_extensions import Self


class Interruption:
    """While this block runs, Ctrl-C and SIGTERM raise ``KeyboardInterrupt``; in a :meth:`whole` block, at its end.

    If the program has handlers of its own for these signals, they are called instead, at the same moment. Nothing
    changes outside the main thread, which alone receives signals. The handlers are restored when the block ends.

    Python answers a signal between two of its operations, so a single call of compiled code is never interrupted.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._is_held, self._held, self._is_over = False, 0, False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before = signal.getsignal(number)
                if callable(before) or before is signal.SIG_DFL:
                    self._before[number] = before
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Hold signals back until this block is done: what it changes is changed completely or not at all."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self._held:
            number, self._held = self._held, 0
            self._receive(number, None)

    def ignore_further(self) -> None:
        """Ignore signals from now on: one has been answered, and what is being saved should be complete."""
        self._is_over = True

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._is_over:
            return
        if self._is_held:
            self._held = number
            return
        before = self._before[number]
        (before if callable(before) else signal.default_int_handler)(number, frame)
