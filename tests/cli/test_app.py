import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gcnsl import cli
from gcnsl.cli.app import as_option, column_option
from gcnsl.cli.graph_source import GraphSource
from gcnsl.errors import ArgumentError, ColumnError

COMMANDS = ("datasets", "inspect", "train", "predict", "explain", "compare", "search", "options", "reproduce", "report")


def test_help_starts_without_torch() -> None:
    script = (
        "import sys; from gcnsl.cli import app; app(['--help'], standalone_mode=False); "
        "print({'torch', 'numpy', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("set()")
    assert re.findall(r"^│ (\w+)  ", done.stdout, re.MULTILINE) == list(COMMANDS), "in the order of their use"
    assert "Exit codes: 0 done; 2 something to fix" in done.stdout


def test_ctrl_c_anywhere_is_one_line(gcnsl, monkeypatch) -> None:
    def read(self, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(GraphSource, "read", read)
    assert gcnsl("train", "debian") == (cli.INTERRUPTED, "", "Interrupted: before anything was finished\n")


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("run", 12, "--run 12 must be small"),
        ("device", "tpu", "--device tpu must be small"),
        ("lr", 7.0, "--set lr=7.0: it must be small"),
        ("graph", "corra", "GRAPH corra must be small"),
    ],
)
def test_errors_speak_of_options(gcnsl, monkeypatch, argument, value, said) -> None:
    def read(self, **_):
        raise ArgumentError(argument, value, "must be small")

    monkeypatch.setattr(GraphSource, "read", read)
    assert gcnsl("train", "debian") == (cli.BAD_INPUT, "", f"Error: {said}\n")


@pytest.mark.parametrize(
    ("column", "shown"),
    [("dorm", "--drop dorm"), ("my dorm", "--drop 'my dorm'"), ("a,b", """--drop '"a,b"'"""), ('"', '--drop \'""""\'')],
)
def test_columns_are_named_as_a_shell_takes_them(column, shown) -> None:
    assert column_option("drop", column) == shown
    error = ColumnError("row 3 is odd", "drop", column)
    assert as_option(error, [SimpleNamespace(name="drop")]) == f"row 3 is odd; {shown} leaves it out"
    assert as_option(error, []) == "row 3 is odd", "the command has no such option"
