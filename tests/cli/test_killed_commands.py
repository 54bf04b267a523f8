import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..damage import CASES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked here")


@pytest.mark.parametrize("command", ["train", "reproduce", "search"])
def test_a_killed_command_loses_and_doubles_nothing(tmp_path, command) -> None:
    program = [
        sys.executable,
        str(Path(__file__).with_name("killed_commands.py")),
        str(tmp_path),
        command,
        str(CASES // 3),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["kills"] >= CASES // 3
    assert (counts["lost"], counts["doubled"]) == (0, 0)
