"""Processes that work for this one: they can be killed, are replaced when they die, and do not outlive it.

Each is a Python of its own rather than one of :mod:`multiprocessing`, which would run the caller's script again. It
reads pickled messages from its standard input, and answers on its standard output. When its input ends, because the
process that started it has ended in whatever way, it removes the temporary files of both and ends too. It is in a
session of its own, so that Ctrl-C in a terminal is left to the process that it works for.
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
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.pool import ExceptionWithTraceback  # type: ignore[attr-defined]  # it keeps a traceback as text
from queue import SimpleQueue
from typing import IO, Any, cast

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


class WorkerWarning(UserWarning):
    """Processes can't be started, so that fewer do the work."""


def threads_of_each(jobs: int) -> int:
    """The number of threads of each of so many processes, which share the cores."""
    cores: int = cpu_count()
    return max(1, cores // jobs)


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that a process must start with: libraries keep to these threads, which sleep while they wait."""
    return {"OMP_WAIT_POLICY": "PASSIVE", **dict.fromkeys(_THREAD_VARIABLES, str(threads))}


class _Died(Exception):  # noqa: N818 - it says what happened
    """A process has ended, in whatever way."""


@dataclass(eq=False)
class _Run:
    """An item to work on, and how many processes that were at it were killed."""

    item: Any
    killed: int = 0


class _Process:
    """A process, and a thread that hands it messages and waits for its answers.

    Attributes:
        answer: The answer to the last message; the first one is the function.
        has_started: Whether it was found to have the function.
        run: What it is at.
    """

    def __init__(self, given: bytes, threads: int, folder: str) -> None:
        path = [os.path.abspath(place) for place in sys.path]
        command = f"import sys; sys.path[:] = {path!r}; from {__name__} import serve; serve({threads}, {folder!r})"
        self._popen = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **thread_environment(threads), **({"TMPDIR": folder} if folder else {})},
            start_new_session=True,
        )
        self.has_started, self.run, self._is_lost = False, cast(_Run | None, None), False
        self._messages: SimpleQueue[tuple[bytes, Future[Any]] | None] = SimpleQueue()
        self.ask(given)
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return not self._is_lost and self._popen.poll() is None

    @property
    def has_answered(self) -> bool:
        return self.answer.done() and not isinstance(self.answer.exception(), _Died)

    def ask(self, message: bytes) -> None:
        """Send a message."""
        self.answer: Future[Any] = Future()
        self._messages.put((message, self.answer))

    def _talk(self) -> None:
        to, back = cast(IO[bytes], self._popen.stdin), cast(IO[bytes], self._popen.stdout)
        while (asked := self._messages.get()) is not None:
            message, answer = asked
            try:
                _send(to, message)
                is_done, found = pickle.loads(_receive(back))
            except (OSError, EOFError):
                self._is_lost, is_done, found = True, False, _Died()
            except Exception as error:  # the answer can't be read
                is_done, found = False, error
            answer.set_result(found) if is_done else answer.set_exception(found)
        with suppress(OSError):  # it has not read all that was sent
            to.close()
        back.close()
        self._popen.wait()

    def kill(self) -> None:
        self._popen.kill()
        self._messages.put(None)

    def join(self) -> None:
        """Wait until it is gone, after it was killed."""
        self._thread.join(_KILL_SECONDS)


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
        self._processes: list[_Process] = []
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
        return 1 if self._is_here else sum(process.has_started for process in self._processes)

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
        awaited = [process.answer for process in self._processes if process.run is not None or not process.has_started]
        if awaited:
            wait(awaited, seconds, FIRST_COMPLETED)
        elif not self._is_here:
            time.sleep(min(seconds, _PAUSE))
        for process in [each for each in self._processes if each.run is not None and each.has_answered]:
            run, process.run = process.run, None
            yield run, process.answer.result()
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
        for process in [process for process in self._processes if process.run is future]:
            self._processes.remove(process)
            process.kill()

    def _renew(self) -> None:
        """Start processes in place of those that have died, and give them the runs that wait."""
        for process in list(self._processes):
            if not process.has_started and process.has_answered and not process.answer.exception():
                process.has_started, self._failed = True, 0
            is_started_or_starting = process.has_started or not process.answer.done()
            if (process.is_alive and is_started_or_starting) or (process.run is not None and process.has_answered):
                continue
            self._processes.remove(process)
            process.kill()
            if not process.has_started:
                error = process.answer.exception() if process.has_answered else None
                self._fail(f"{type(error).__name__}: {error}" if error else "killed, perhaps for lack of memory")
            elif process.run is not None:
                process.run.killed += 1
                if process.run.killed < MOST_KILLED:
                    self._waiting.append(process.run)
        try:
            while len(self._processes) < self._jobs:
                self._processes.append(_Process(self._given, self._threads, self._folder))
        except OSError as error:
            self._fail(str(error))
        self._assign()

    def _fail(self, why: str) -> None:
        """Count a process that could not start. After many in a row, those that have started go on, or this one."""
        self._failed += 1
        if self._failed < MOST_FAILED:
            return
        started = [process for process in self._processes if process.has_started]
        for process in self._processes:
            if process not in started:
                process.kill()
        self._processes, self._jobs, self._failed = started, len(started), 0
        self.gives_up_at_once = not self._is_here
        others = f"{len(started)} others go on" if started else "this one does all the work"
        warnings.warn(f"{MOST_FAILED} processes could not start ({one_line(why, 120)}): {others}", WorkerWarning, 2)

    def _assign(self) -> None:
        """Give runs to idle processes."""
        for process in self._processes:
            if self._waiting and process.has_started and process.run is None and process.is_alive:
                process.run = self._waiting.popleft()
                process.ask(pickle.dumps(process.run.item))

    def _end(self) -> None:
        killed, self._processes = self._processes, []
        self._waiting.clear()
        for process in killed:
            process.kill()
        for process in killed:
            process.join()

    def __exit__(self, *_: object) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = ""


def serve(threads: int, folder: str) -> None:
    """Work for the process that has started this one, until it ends; to be called first in a process."""
    messages, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)  # what libraries print would be taken for an answer
    received: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                received.put(_receive(messages))
        except EOFError:
            _leave(folder)

    threading.Thread(target=listen, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))  # not to be answered by the training we are at

    def begin() -> Callable[[Any], Any]:
        import torch

        torch.set_num_threads(threads)
        call: Callable[[Any], Any] = pickle.loads(received.get())
        return call

    given: list[Callable[[Any], Any]] = []
    with suppress(OSError):  # nobody listens any more
        _send(answers, _answer(lambda: given.append(begin())))
        while given:
            _send(answers, _answer(lambda: given[0](pickle.loads(received.get()))))


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


def _leave(folder: str) -> None:
    """End this process. Its training goes on until then, and may write files while others are removed."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
        time.sleep(0.05)
    os._exit(1)


def _send(file: IO[bytes], message: bytes) -> None:
    file.write(len(message).to_bytes(8, "little"))
    file.write(message)
    file.flush()


def _receive(file: IO[bytes]) -> bytes:
    size = int.from_bytes(file.read(8), "little")
    message = file.read(size)
    if not size or len(message) < size:
        raise EOFError("the other process has ended")
    return message
