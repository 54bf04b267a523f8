"""Workers on other machines, by Dask (https://distributed.dask.org): whoever can reach its scheduler can use them.

Dask carries out a run again, on another worker, if the one that was at it disappears. After a few times it gives up on
the run, which might be what kills them.
"""

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from typing import Any

from gcnsl.errors import ArgumentError, InputError
from gcnsl.runs.executor import Executor, Item, Result, WorkerLost, check_by

_CONNECT_SECONDS, _WORKER_SECONDS = 10, 60
"""How long to wait for the scheduler, and for the first worker."""
_SETTINGS = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # ours are sent once


class Cluster(Executor):
    """The workers of a Dask scheduler.

    Args:
        address: That of the scheduler, such as ``"tcp://10.0.0.1:8786"``.

    Raises:
        ArgumentError: If nobody answers there, or Dask is not installed.
        InputError: If there are no workers.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            import dask
            import distributed
        except ImportError as error:
            raise ArgumentError("cluster", address, "needs Dask: pip install 'gcnsl[cluster]'") from error
        with ExitStack() as opened:  # which closes everything if something below fails
            opened.enter_context(dask.config.set(_SETTINGS))
            try:
                client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError) as error:
                rule = "can't be reached: it must be a Dask scheduler, such as tcp://10.0.0.1:8786"
                raise ArgumentError("cluster", address, rule) from error
            self._client = opened.enter_context(client)
            try:
                client.wait_for_workers(1, timeout=_WORKER_SECONDS)
            except TimeoutError as error:
                start = "start some with `dask worker ADDRESS --nthreads 1`"
                raise InputError(f"the cluster {address} has no workers: {start}") from error
            self._open = opened.pop_all()

    @property
    def slots(self) -> int:
        """The number of workers; 1 if there are none at the moment, so that a run awaits the next one."""
        return max(1, len(self._client.nthreads()))

    def _starter(self, call: Callable[[Item], Result]) -> Callable[[Item], Any]:
        # As the result of a task, the function is in the memory of the workers, and Dask makes it again if those that
        # have it are killed; what `Client.scatter` sends would be lost.
        ready = self._client.submit(_given, call, pure=False)
        return lambda item: self._client.submit(_call_on, ready, item, pure=False)

    def _finished(self, futures: Collection[Any], seconds: float) -> Iterator[tuple[Any, Any]]:
        from distributed import KilledWorker, wait

        with self._client.as_current(), suppress(TimeoutError, CancelledError):
            wait(list(futures), seconds, return_when="FIRST_COMPLETED")
        for future in [future for future in futures if future.status != "pending"]:
            try:
                result = future.result(seconds)
            except TimeoutError:  # its worker was killed before the result was fetched: Dask does it again
                continue
            except KilledWorker as error:
                times = f"{error.allowed_failures + 1} workers that were at it were killed"
                result = WorkerLost(f"{times}, perhaps for lack of memory")
            except CancelledError as error:
                raise InputError(f"the scheduler of the cluster {self._address} has gone: start it again") from error
            future.release()  # otherwise Dask would do it again if its worker were killed now
            yield future, result

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _given(call: Result) -> Result:
    return call


_one_run = threading.Lock()
"""Runs seed generators that all threads of a process share."""


def _call_on(call: Callable[[Item], Result], item: Item) -> Result:
    """On a worker: carry out a run."""
    check_by(_stop_if_cancelled)
    with _one_run:
        return call(item)


def _stop_if_cancelled(*_: Any) -> None:
    """End the run if the one who asked for it has left; its worker is free for others then."""
    from distributed import get_worker
    from distributed.worker import thread_state

    task = get_worker().state.tasks.get(thread_state.key)
    if task is None or task.state == "cancelled":
        raise CancelledError
