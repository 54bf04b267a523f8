import os
import subprocess
import sys
from pathlib import Path

import pytest

FREED = """
import sys
import numpy as np
from gcnsl import memory

before, after = (getattr(memory, name, lambda: None) for name in sys.argv[1:])
before()
np.ones(31 << 17).sum()  # 31 MiB, freed: glibc keeps blocks of this size from now on, unless it is told otherwise
parts = [np.ones(1 << 20) for _ in range(64)]  # 8 MiB each
last = np.ones(1 << 20)  # what is below it can't be returned by shrinking the heap
parts.clear()
after()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""
HALF = 256 << 10
"""Half of what is freed, in KiB."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")


def resident(before: str, after: str = "none", **environment: str) -> int:
    """KiB of memory after much of it was freed, with one function of the module called before and one after that."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # Dask sets one
    command = [sys.executable, "-c", FREED, before, after]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=usual | environment)
    return int(done.stdout)


def test_freed_blocks_are_returned_to_the_system() -> None:
    assert resident("none") - resident("give_memory_back") > HALF


def test_what_was_freed_earlier_is_returned_too() -> None:
    assert resident("none") - resident("none", "give_memory_back") > HALF


def test_freed_blocks_are_kept_although_dask_asks_to_return_them() -> None:
    as_dask_sets_it = {"MALLOC_TRIM_THRESHOLD_": "65536"}
    assert resident("keep_memory", **as_dask_sets_it) - resident("none", **as_dask_sets_it) > HALF
