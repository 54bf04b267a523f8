"""Whether work is captured as a CUDA graph, which a GPU then replays without the host.

Each operation that the host starts on a GPU takes it some microseconds, and in an epoch of a small graph there are
hundreds. A captured sequence of operations is started by one call. While it runs, the host can't look at any value, so
code that would otherwise do so has to ask :func:`is_recorded` first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_recorded: ContextVar[bool] = ContextVar("_recorded", default=False)


def is_recorded() -> bool:
    """Whether this work is captured, or a rehearsal of it, so that no value on the device may be looked at."""
    return _recorded.get()


@contextmanager
def recorded() -> Iterator[None]:
    """Work in this block as if it were captured."""
    token = _recorded.set(True)
    try:
        yield
    finally:
        _recorded.reset(token)
