"""Processes that work for another one: they leave Ctrl-C to it, keep to their share of cores and do not outlive it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
import torch
from joblib.externals.loky.process_executor import ProcessPoolExecutor

from gcnsl.checks import check_whole
from gcnsl.workers.executor import Executor, Item, Result, WorkerLost, check_by

_IDLE_SECONDS = 60
"""A worker ends after waiting so long for work: if its parent was killed, it would wait forever."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Worker:
    """What a process must know of the one it works for: its number, and how many threads it may use itself."""

    parent: int
    threads: int

    @classmethod
    def one_of(cls, jobs: int) -> Worker:
        """One of so many workers of this process, which share the cores."""
        return cls(os.getpid(), max(1, (os.cpu_count() or 1) // jobs))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that keep libraries to the threads, which sleep while they wait; a process starts with them."""
        return {"OMP_WAIT_POLICY": "PASSIVE", **dict.fromkeys(_THREAD_VARIABLES, str(self.threads))}

    def begin(self) -> None:
        """To be called first in the worker."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends us
        signal.signal(signal.SIGTERM, lambda *_: os._exit(1))  # not to be answered by the training we are at
        torch.set_num_threads(self.threads)

    def stop_if_orphaned(self, *_: object) -> None:
        """End the worker if its parent was killed: whoever goes on would do the same work a second time."""
        if os.getppid() != self.parent:
            os._exit(1)


class Processes(Executor):
    """So many processes of this machine.

    If one dies, the runs that are under way in the others are lost with it, and new processes do the rest.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = check_whole("jobs", jobs, least=1)
        self._pool: Any = None

    @property
    def slots(self) -> int:
        """The number of processes."""
        return self._jobs

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        worker = Worker.one_of(self._jobs)

        def start(item: Item) -> Any:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self._jobs,
                    timeout=_IDLE_SECONDS,
                    initializer=_begin,
                    initargs=(call, worker),
                    env=worker.environment,
                )
            return self._pool.submit(_call_on, item)

        self._end()  # the processes of an earlier function
        return start

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        for future in wait(futures, seconds, FIRST_COMPLETED).done:
            try:
                result = future.result()
            except BrokenProcessPool:
                self._end()
                result = WorkerLost("its process was killed, or one beside it, perhaps for lack of memory")
            yield future, result

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(kill_workers=True)
            self._pool = None

    def __exit__(self, *_: object) -> None:
        self._end()


_given: dict[str, Any] = {}
"""In a worker: the function that it was given."""


def _begin(call: Callable[[Any], Any], worker: Worker) -> None:
    worker.begin()
    check_by(worker.stop_if_orphaned)
    _given["call"] = call


def _call_on(item: Any) -> Any:
    return _given["call"](item)


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
