"""What a user has mistyped is refused before a library that takes seconds to load is loaded."""

import json
import subprocess
import sys

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


def test_mistakes_are_refused_in_one_line_before_anything_slow_is_loaded(tmp_path) -> None:
    """All commands run in one process, in which the slow libraries can't be loaded; lists need them as little."""
    prepare(tmp_path)
    lists = ("options", "--help")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(slow=SLOW)],
        cwd=tmp_path,
        input=json.dumps([*CASES, *lists]),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(done.stdout)
    assert [command for command, answer in answers.items() if answer["loaded"]] == []
    assert {answers.pop(command)["code"] for command in lists} == {0}
    for command, answer in answers.items():
        assert answer["code"] == BAD_INPUT, f"{command}: {answer['said']}"
        assert answer["said"].startswith("Error: "), command
        assert answer["said"].count("\n") == 1, command
        assert CASES[command] in answer["said"], command
