"""What a user has mistyped is refused before a library that takes seconds to load is loaded."""

import json
import subprocess
import sys

import pytest
from bench.refusals import CASES, prepare

from gcnsl.cli import BAD_INPUT

SLOW = ("torch", "torch_geometric", "sklearn", "numba", "optuna", "matplotlib")
SCRIPT = """
import contextlib, io, json, shlex, sys, traceback

class Slow:
    loaded = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {slow}:
            self.loaded.append(name)
            raise RuntimeError(name + " is imported")

sys.meta_path.insert(0, Slow())
from gcnsl.cli import main

answers = {{}}
for command in json.load(sys.stdin):
    sys.argv, Slow.loaded, said, code = ["gcnsl", *shlex.split(command)], [], io.StringIO(), None
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            traceback.print_exc()
    answers[command] = {{"code": code, "said": said.getvalue(), "loaded": Slow.loaded}}
json.dump(answers, sys.stdout)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, dict]:
    """What comes of each command; all run in one process, in which the slow libraries can't be loaded."""
    folder = tmp_path_factory.mktemp("refusals")
    prepare(folder)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(slow=SLOW)],
        cwd=folder,
        input=json.dumps([*CASES, "options", "--help"]),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", CASES)
def test_a_mistake_is_refused_in_one_line_before_anything_slow_is_loaded(answers, command) -> None:
    answer = answers[command]
    assert answer["loaded"] == []
    assert answer["code"] == BAD_INPUT, answer["said"]
    assert CASES[command] in answer["said"]
    assert answer["said"].startswith("Error: ")
    assert answer["said"].count("\n") == 1


@pytest.mark.parametrize("command", ["options", "--help"])
def test_lists_need_nothing_slow_either(answers, command) -> None:
    assert (answers[command]["code"], answers[command]["loaded"]) == (0, [])
