"""Processes that work for another one: they leave Ctrl-C to it, keep to their share of cores and do not outlive it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import joblib
import torch

Item = TypeVar("Item")

_IDLE_SECONDS = 60
"""A worker ends after waiting so long for work: if its parent was killed, it would wait forever."""


@dataclass(frozen=True)
class Worker:
    """What a process must know of the one it works for: its number, and how many threads it may use itself."""

    parent: int
    threads: int

    @classmethod
    def one_of(cls, jobs: int) -> Worker:
        """One of so many workers of this process, which share the cores."""
        return cls(os.getpid(), max(1, (os.cpu_count() or 1) // jobs))

    def begin(self) -> None:
        """To be called first in the worker."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends us
        signal.signal(signal.SIGTERM, lambda *_: os._exit(1))  # not to be answered by the training we are at
        torch.set_num_threads(self.threads)

    def stop_if_orphaned(self, *_: object) -> None:
        """End the worker if its parent was killed: whoever goes on would do the same work a second time."""
        if os.getppid() != self.parent:
            os._exit(1)


def in_processes(call: Callable[[Item], None], items: Iterable[Item], *, jobs: int, worker: Worker) -> None:
    """Call a function on each item in processes; each process gets the next item when it has finished one.

    If a process dies, joblib raises ``TerminatedWorkerError``.
    """
    with joblib.parallel_config(
        "loky", n_jobs=jobs, inner_max_num_threads=worker.threads, idle_worker_timeout=_IDLE_SECONDS
    ):
        joblib.Parallel(batch_size=1, pre_dispatch="n_jobs")(joblib.delayed(call)(item) for item in items)


@contextmanager
def watching(look: Callable[[], None], *, every: float) -> Iterator[None]:
    """While the block runs, call ``look`` in another thread every so many seconds, and once more at the end."""
    over = threading.Event()

    def keep_looking() -> None:
        while not over.wait(every):
            look()
        look()

    thread = threading.Thread(target=keep_looking)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
