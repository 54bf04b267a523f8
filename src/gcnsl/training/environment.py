"""What a run works with: a device, random numbers, threads, and signals such as Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from typing_extensions import Self

from gcnsl.checks import check_device
from gcnsl.errors import ArgumentError


def choose_device(device: str | torch.device = "auto") -> torch.device:
    """The device with this name: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; ``"auto"`` is CUDA if available, else the CPU."""
    if check_device(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        chosen = torch.device("meta")
    if chosen.type not in ("cpu", "cuda"):
        raise ArgumentError("device", str(device), "must be auto, cpu, cuda or cuda:N")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError("device", str(device), "can't be used: torch finds no CUDA device; use auto or cpu")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ArgumentError("device", str(device), f"must be below cuda:{torch.cuda.device_count()}, or auto")
    return chosen


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's generators of the CPU and of ``device`` for this block, and restore their states afterwards."""
    device = torch.device(device)
    on_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_cuda else []):
        torch.default_generator.manual_seed(int(seed))  # torch.manual_seed would also seed other devices
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(int(seed))
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let one thread do all the work: that of NumPy and SciPy, and torch's own linear algebra."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


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
