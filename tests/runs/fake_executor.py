"""An executor without workers."""

import pickle
import random
from concurrent.futures import Future

from gcnsl.runs.executor import Executor, WorkerLost
from gcnsl.runs.jobs import Job


class FakeExecutor(Executor):
    """Carries out runs here, on copies, as another machine would; those under way are finished in any order.

    Args:
        slots: How many are under way at once.
        lost: Items whose worker is killed, or the names and runs of jobs.
        seed: Of the order.
    """

    def __init__(self, slots: int = 3, *, lost=(), seed: int = 0) -> None:
        self._slots, self._lost, self._random = slots, lost, random.Random(seed)
        self.cancelled, self.calls_sent, self.most_under_way = 0, 0, 0

    @property
    def slots(self) -> int:
        return self._slots

    def _starter(self, call):
        self.calls_sent += 1
        copies = [pickle.loads(pickle.dumps(call)) for _ in range(self._slots)]

        def start(item):
            future = Future()
            future.work = copies[self._random.randrange(len(copies))], pickle.dumps(item)
            future.add_done_callback(self._count)
            return future

        return start

    def _count(self, future) -> None:
        self.cancelled += future.cancelled()

    def _finished(self, futures, seconds):
        self.most_under_way = max(self.most_under_way, len(futures))
        future = self._random.choice(list(futures))
        call, item = future.work
        item = pickle.loads(item)
        is_lost = item in self._lost or (isinstance(item, Job) and (item.name, item.run) in self._lost)
        yield future, WorkerLost("killed") if is_lost else pickle.loads(pickle.dumps(call(item)))

    def __exit__(self, *_) -> None:
        pass
