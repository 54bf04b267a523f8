"""Device, random numbers, threads, compiled functions, CUDA graphs and signals.

torch, NumPy and scikit-learn divide even small tasks among threads that wait for each other in busy loops. While
another process occupies a core, this makes calls 40 to 200 times slower. The package therefore uses one thread unless
there is much to do. It depends on the size of the work alone, so that the same input gives the same bits.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import FrameType
from typing import Any, TypeVar, cast

import torch
from threadpoolctl import ThreadpoolController
from typing_extensions import Self

from gcnsl.checks import check_device
from gcnsl.errors import ArgumentError

Function = TypeVar("Function", bound=Callable[..., Any])
LARGE = 1 << 29
"""Number of multiply-adds from which work is shared among threads. Sparse products need half a second for as many."""
_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)
_recorded: ContextVar[bool] = ContextVar("_recorded", default=False)


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


def compiled(**options: Any) -> Callable[[Function], Function]:
    """A decorator: ``numba.njit`` without the interpreter's lock, cached on disk if there is a writable folder."""
    import numba  # here, because it takes long to load

    def decorate(function: Function) -> Function:
        try:
            return cast(Function, numba.njit(nogil=True, cache=True, **options)(function))
        except RuntimeError:  # no folder for the cache
            return cast(Function, numba.njit(nogil=True, **options)(function))

    return decorate


def is_recorded() -> bool:
    """Whether this work is captured as a CUDA graph, or a rehearsal of it: no value on the device may be looked at."""
    return _recorded.get()


@contextmanager
def recorded() -> Iterator[None]:
    """Work in this block as if it were captured."""
    token = _recorded.set(True)
    try:
        yield
    finally:
        _recorded.reset(token)


def allowed_threads() -> int:
    """The number of threads that torch may use: what was set outside of all blocks of :func:`torch_threads_for`."""
    return _allowed.get() or torch.get_num_threads()


@contextmanager
def torch_threads_for(work: int) -> Iterator[None]:
    """Use one thread of torch in this block, or all allowed ones for :data:`LARGE` multiply-adds or more."""
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
    with torch_threads_for(work), _pools(len(sys.modules)).limit(limits=None if work >= LARGE else 1):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread in this block, however much work there is."""
    token = _allowed.set(1)
    try:
        with threads_for(0):
            yield
    finally:
        _allowed.reset(token)


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:
    """The thread pools of all loaded libraries, searched again when further modules have been imported."""
    return ThreadpoolController()


class Interruption:
    """A context in which Ctrl-C and SIGTERM raise ``KeyboardInterrupt``; in a :meth:`whole` block, at its end.

    The program's own handlers of these signals are called instead, if there are any. Outside the main thread, which
    alone receives signals, nothing changes.
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
        if self._is_held and not self._is_over:
            self._held = number
        elif not self._is_over:
            before = self._before[number]
            (before if callable(before) else signal.default_int_handler)(number, frame)
