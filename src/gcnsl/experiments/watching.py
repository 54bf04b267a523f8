"""A look at how far the work is, every now and then, beside it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watching(look: Callable[[], None], *, every: float) -> Iterator[None]:
    """While the block runs, call ``look`` in another thread, so many seconds apart, and once more at the end."""
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
