"""Processes that work for this one: they can be killed, are replaced when they die, and do not outlive it.

Each is a Python of its own rather than one of :mod:`multiprocessing`, which would run the caller's script again; only
its pipes are used. The pools of :mod:`concurrent.futures` and loky give up all runs when one process dies. When the
pipe ends, because the process at its other end has ended in whatever way, a worker removes the temporary files of both
and ends too. It is in a session of its own, so that Ctrl-C in a terminal is left to the process that it works for.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]  # it keeps a traceback as text
from queue import SimpleQueue
from typing import Any, cast

from joblib import cpu_count

from gcnsl.checks import check_whole
from gcnsl.errors import one_line
from gcnsl.runs.executor import Executor, Item, Result, WorkerLost

MOST_FAILED = 8
"""After so many processes in a row that could not start, the work is done here."""
MOST_KILLED = 2
"""So many processes that were at a run may be killed before it is given up."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_KILL_SECONDS, _PAUSE = 10.0, 0.2
"""How long a killed process is waited for, and how long until the next attempt to start one."""
_KILLED = "killed, perhaps for lack of memory"


class WorkerWarning(UserWarning):
    """Processes can't be started, so that fewer do the work."""


def threads_of_each(jobs: int) -> int:
    """The number of threads of each of so many processes, which share the cores."""
    cores: int = cpu_count()
    return max(1, cores // jobs)


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that a process must start with: libraries keep to these threads, which sleep while they wait."""
    return {"OMP_WAIT_POLICY": "PASSIVE", **dict.fromkeys(_THREAD_VARIABLES, str(threads))}


@dataclass(eq=False)
class _Run:
    """An item to work on, and how many processes that were at it were killed."""

    item: Any
    killed: int = 0


class _Worker:
    """A process, and the pipe to it: it is sent the function and then items, each after the answer to the last one.

    Attributes:
        has_started: Whether it has answered that it has the function.
        run: What it is at.
    """

    def __init__(self, given: bytes, threads: int, folder: str) -> None:
        self.has_started, self.run = False, cast(_Run | None, None)
        path = [os.path.abspath(place) for place in sys.path]
        self.pipe, theirs = Pipe()
        with theirs:
            serving = f"from {__name__} import serve; serve({theirs.fileno()}, {threads}, {folder!r})"
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", f"import sys; sys.path[:] = {path!r}; {serving}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **thread_environment(threads), **({"TMPDIR": folder} if folder else {})},
                start_new_session=True,
            )
        self._sender = threading.Thread(target=self.send, args=(given,), daemon=True)  # it may be more than fits a pipe
        self._sender.start()

    def send(self, message: bytes) -> bool:
        """Send a message, and say whether there is somebody to read it."""
        try:
            self.pipe.send_bytes(message)
        except OSError:
            return False
        return True

    @property
    def is_alive(self) -> bool:
        """Whether it has not died, or its answer is still to be read."""
        return self.process.poll() is None or self.pipe.poll()

    def join(self) -> None:
        """Wait until it is gone, after it was killed."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILL_SECONDS)
        self._sender.join(_KILL_SECONDS)
        self.pipe.close()


class Processes(Executor):
    """So many processes of this machine; one that dies, or is killed because a run is too slow, is replaced.

    A run whose process was killed is tried once more. If no process can be started, this one does the work, with a
    :class:`WorkerWarning`; then no run can be given up.

    Args:
        jobs: The number of processes.
    """

    gives_up_at_once = True

    def __init__(self, jobs: int) -> None:
        self._jobs = check_whole("jobs", jobs, least=1)
        self._threads = threads_of_each(jobs)
        self._folder = ""  # for temporary files, which the processes remove if this one is killed
        self._call: Callable[[Any], Any]
        self._given = b""
        self._workers, self._killed = list[_Worker](), list[_Worker]()
        self._waiting: deque[_Run] = deque()
        self._failed = 0

    @property
    def _is_here(self) -> bool:
        """Whether this process does the work."""
        return self._jobs == 0

    @property
    def slots(self) -> int:
        """The number of processes."""
        return max(1, self._jobs)

    @property
    def ready(self) -> int:
        """The number of processes that have started."""
        return 1 if self._is_here else sum(worker.has_started for worker in self._workers)

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        def start(item: Item) -> Any:
            run = _Run(item)
            if not self._is_here:
                self._waiting.append(run)
                self._assign()
            return run

        self._end()  # the processes of an earlier function
        with suppress(OSError):  # on a full disk
            self._folder = self._folder or tempfile.mkdtemp(prefix="gcnsl-")
        self._call, self._given = call, pickle.dumps(call)
        self._renew()
        return start

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        if not self._workers and not self._is_here:
            time.sleep(min(seconds, _PAUSE))
        answering = wait([worker.pipe for worker in self._workers], seconds) if self._workers else []
        for worker in [worker for worker in self._workers if worker.pipe in answering]:
            try:
                message = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                self._replace(worker, _KILLED)
                continue
            if worker.has_started and worker.run is not None:
                run, worker.run = worker.run, None
                yield run, _opened(message)
                continue
            try:
                _opened(message)
                worker.has_started, self._failed = True, 0
            except Exception as error:
                self._replace(worker, f"{type(error).__name__}: {error}")
        self._renew()
        for run in list(futures):
            if run.killed == MOST_KILLED:
                yield run, WorkerLost("its process was killed twice, perhaps for lack of memory")
            elif self._is_here and run.killed:  # it might kill this one, too
                yield run, WorkerLost("its process was killed, and no other can be started")
            elif self._is_here:
                yield run, self._call(run.item)

    def _give_up(self, future: Any) -> None:
        if future in self._waiting:
            self._waiting.remove(future)
        for worker in [worker for worker in self._workers if worker.run is future]:
            self._kill(worker)

    def _kill(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._killed.append(worker)
        worker.process.kill()

    def _replace(self, worker: _Worker, why: str) -> None:
        """Count what the end of a process means, and make room for another."""
        if worker not in self._workers:  # others have failed, too
            return
        self._kill(worker)
        if not worker.has_started:
            self._fail(why)
        elif worker.run is not None:
            worker.run.killed += 1
            self._waiting.extend([worker.run] if worker.run.killed < MOST_KILLED else [])

    def _renew(self) -> None:
        """Start processes in place of those that have died, and give them the runs that wait."""
        for worker in [worker for worker in self._workers if not worker.is_alive]:
            self._replace(worker, _KILLED)
        try:
            while len(self._workers) < self._jobs:
                self._workers.append(_Worker(self._given, self._threads, self._folder))
        except (OSError, ValueError) as error:  # the second on systems that can't hand a pipe on
            self._fail(str(error))
        self._assign()

    def _fail(self, why: str) -> None:
        """Count a process that could not start. After many in a row, those that have started go on, or this one."""
        self._failed += 1
        if self._failed < MOST_FAILED:
            return
        for worker in [worker for worker in self._workers if not worker.has_started]:
            self._kill(worker)
        self._jobs, self._failed = len(self._workers), 0
        self.gives_up_at_once = not self._is_here
        others = "this one does all the work" if self._is_here else f"{self._jobs} others go on"
        warnings.warn(f"{MOST_FAILED} processes could not start ({one_line(why, 120)}): {others}", WorkerWarning, 2)

    def _assign(self) -> None:
        """Give runs to idle processes; one that is killed while it is idle is given none."""
        for worker in self._workers:
            is_idle = worker.has_started and worker.run is None and worker.is_alive
            if is_idle and self._waiting and worker.send(pickle.dumps(self._waiting[0].item)):
                worker.run = self._waiting.popleft()

    def _end(self) -> None:
        ended, self._workers, self._killed = [*self._workers, *self._killed], [], []
        self._waiting.clear()
        for worker in ended:
            worker.process.kill()
        for worker in ended:
            worker.join()

    def __exit__(self, *_: object) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = ""


def serve(number: int, threads: int, folder: str) -> None:
    """Work for the process at the other end of the pipe with this number until it ends; called first in a process."""
    os.set_inheritable(number, False)
    pipe = Connection(number)
    received: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                received.put(pipe.recv_bytes())
        deadline = time.monotonic() + 1  # training goes on until then, and may write files while others are removed
        while os.path.exists(folder) and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.02)
        os._exit(1)

    def begin() -> Callable[[Any], Any]:
        import torch

        torch.set_num_threads(threads)
        call: Callable[[Any], Any] = pickle.loads(received.get())
        return call

    threading.Thread(target=listen, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))  # not to be answered by the training we are at
    given: list[Callable[[Any], Any]] = []
    with suppress(OSError):  # nobody listens any more
        pipe.send_bytes(_answer(lambda: given.append(begin())))
        while given:
            pipe.send_bytes(_answer(lambda: given[0](pickle.loads(received.get()))))


def _answer(work: Callable[[], Any]) -> bytes:
    """What comes of the work, pickled: whether it was done, and the result or the error."""
    try:
        return pickle.dumps((True, work()))
    except Exception as error:
        with suppress(Exception):  # not all errors can be sent
            told = pickle.dumps((False, ExceptionWithTraceback(error, error.__traceback__)))
            pickle.loads(told)
            return told
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def _opened(message: bytes) -> Any:
    """The result in an answer; an error is raised."""
    is_done, found = pickle.loads(message)
    if not is_done:
        raise found
    return found
