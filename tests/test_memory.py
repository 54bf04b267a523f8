import os
import subprocess
import sys
from pathlib import Path

import pytest

FREED = """
import sys
import numpy as np
from gcnsl.memory import give_memory_back

if sys.argv[1] == "now":
    give_memory_back()
np.ones(31 << 17).sum()  # 31 MiB, freed: glibc keeps blocks of this size from now on
parts = [np.ones(1 << 20) for _ in range(64)]  # 8 MiB each
last = np.ones(1 << 20)  # what is below it can't be returned by shrinking the heap
parts.clear()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_freed_blocks_are_returned_to_the_system() -> None:
    def kib(when: str) -> int:
        usual = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # Dask sets one
        command = [sys.executable, "-c", FREED, when]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=usual)
        return int(done.stdout)

    assert kib("never") - kib("now") > 256 << 10  # of 512 MiB
