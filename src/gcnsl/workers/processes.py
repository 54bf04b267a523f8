"""Processes that work for another one: they leave Ctrl-C to it, keep to their share of cores and do not outlive it."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor, process_executor

from gcnsl.checks import check_whole
from gcnsl.errors import InputError
from gcnsl.workers.executor import Executor, Item, Result, WorkerLost

warnings.filterwarnings("ignore", "A worker stopped while some jobs were given to the executor", UserWarning)
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Worker:
    """What a process must know of the one it works for: its number, and how many threads it may use itself."""

    parent: int
    threads: int

    @classmethod
    def one_of(cls, jobs: int) -> Worker:
        """One of so many workers of this process, which share the cores."""
        return cls(os.getpid(), max(1, cpu_count() // jobs))

    @property
    def environment(self) -> dict[str, str]:
        """Variables that a process must start with: libraries keep to these threads, which sleep while they wait."""
        return {"OMP_WAIT_POLICY": "PASSIVE", **dict.fromkeys(_THREAD_VARIABLES, str(self.threads))}

    def begin(self) -> None:
        """To be called first in the worker."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends us
        signal.signal(signal.SIGTERM, lambda *_: os._exit(1))  # not to be answered by the training we are at
        torch.set_num_threads(self.threads)

    def stop_if_orphaned(self) -> None:
        """End the worker if its parent was killed: whoever goes on would do the same work a second time."""
        if os.getppid() != self.parent:
            os._exit(1)


MOST_KILLED = 8
"""After so many processes were killed while they started, there is no sense in starting others."""


@dataclass(eq=False)
class _Process:
    """A pool of one process, so that it can be killed alone; ``ready`` is finished once it has the function."""

    pool: Any
    ready: Future[None]

    @property
    def was_killed(self) -> bool:
        """Whether it was killed while it was starting."""
        return self.ready.done() and isinstance(self.ready.exception(), BrokenProcessPool)

    @property
    def is_ready(self) -> bool:
        """Whether it can begin; raises what kept it from getting ready, unless it was killed."""
        return self.ready.done() and not self.was_killed and self.ready.result() is None

    def kill(self) -> None:
        self.pool.shutdown(wait=False, kill_workers=True)


class Processes(Executor):
    """So many processes of this machine; one that dies, or is killed because a run is too slow, is replaced.

    Raises:
        InputError: If :data:`MOST_KILLED` processes are killed while they start.
    """

    gives_up_at_once = True

    def __init__(self, jobs: int) -> None:
        self._jobs = check_whole("jobs", jobs, least=1)
        self._new: Callable[[], _Process]
        self._processes: list[_Process] = []
        self._busy: dict[Any, _Process] = {}
        self._killed = 0

    @property
    def slots(self) -> int:
        """The number of processes."""
        return self._jobs

    @property
    def ready(self) -> int:
        """The number of processes that have started."""
        return sum(process.is_ready for process in self._processes)

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        def start(item: Item) -> Any:
            idle = [process for process in self._processes if process not in self._busy.values() and process.is_ready]
            future = idle[0].pool.submit(_call_on, item)
            self._busy[future] = idle[0]
            return future

        def new() -> _Process:
            worker = Worker.one_of(self._jobs)
            pool = ProcessPoolExecutor(1, env=worker.environment)
            return _Process(pool, pool.submit(_begin, worker, call))  # an initializer would be waited for here

        self._end()  # the processes of an earlier function
        self._new, self._processes = new, [new() for _ in range(self._jobs)]
        return start

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        alive = [process for process in self._processes if not process.was_killed]
        self._killed += len(self._processes) - len(alive)
        if self._killed >= MOST_KILLED:
            why = "were killed while they started, perhaps for lack of memory"
            raise InputError(f"{self._killed} processes {why}: use fewer of them")
        self._processes = alive + [self._new() for _ in range(self._jobs - len(alive))]
        starting = [process.ready for process in self._processes if not process.ready.done()]
        wait([*futures, *starting], seconds, FIRST_COMPLETED)
        for future in [future for future in futures if future.done()]:
            try:
                result = future.result()
                del self._busy[future]
            except BrokenProcessPool:
                self._give_up(future)
                result = WorkerLost("its process was killed, perhaps for lack of memory")
            yield future, result

    def _give_up(self, future: Any) -> None:
        process = self._busy.pop(future, None)
        if process is not None:
            self._processes.remove(process)
            process.kill()

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
        self._processes, self._busy = [], {}

    def __exit__(self, *_: object) -> None:
        self._end()


_given: dict[str, Any] = {}
"""In a worker: the function that it was given."""


def _begin(worker: Worker, call: Callable[[Any], Any]) -> None:
    worker.begin()
    _given["call"] = call
    process_executor._USE_PSUTIL = False  # else loky replaces a process that has grown, by one that lacks the function

    def watch() -> None:
        while True:
            worker.stop_if_orphaned()
            time.sleep(1)

    threading.Thread(target=watch, daemon=True).start()


def _call_on(item: Any) -> Any:
    return _given["call"](item)


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
