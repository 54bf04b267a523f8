"""What becomes of freed memory: it goes back to the system, or is kept for what comes next.

Both are asked of glibc. Nothing happens on systems without it.
"""

import ctypes
import sys
from contextlib import suppress

_LEAST_RETURNED, _LEAST_TRIMMED = -3, -1
"""glibc's numbers for the smallest block that is returned as soon as it is freed, and for the smallest free end of the
heap that is returned."""
_MIB = 1 << 20


def give_memory_back() -> None:
    """Return what has been freed to the system, and from now on freed blocks of 4 MiB or more at once.

    glibc returns blocks above a bound that grows up to 32 MiB, and keeps the others. In the training of a million nodes
    those that it keeps come to gigabytes.
    """
    _glibc("mallopt", _LEAST_RETURNED, 4 * _MIB)
    _glibc("malloc_trim", 0)


def keep_memory() -> None:
    """From now on, keep freed blocks below 32 MiB.

    Dask makes its workers return blocks of 128 KiB. An epoch of a small graph takes much longer then, because
    the system clears every block that it hands out again.
    """
    _glibc("mallopt", _LEAST_RETURNED, 32 * _MIB)
    _glibc("mallopt", _LEAST_TRIMMED, 128 * _MIB)


def _glibc(function: str, *arguments: int) -> None:
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            getattr(ctypes.CDLL(None), function)(*arguments)
