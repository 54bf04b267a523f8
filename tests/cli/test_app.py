import io
import re
import subprocess
import sys
import warnings

import pytest
from cli_cases import QUICK
from rich.console import Console

from gcnsl import InputError, cli
from gcnsl.cli import console
from gcnsl.cli.console import epochs_shown, percent, runs_shown
from gcnsl.cli.graph_source import GraphSource
from gcnsl.training import Epoch

COMMANDS = ("datasets", "inspect", "train", "predict", "explain", "compare", "search", "reproduce", "report")


def test_debug_shows_the_traceback(monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gcnsl", "--debug", "inspect", "corra"])
    with pytest.raises(InputError):
        cli.main()


def test_help_starts_without_torch() -> None:
    script = (
        "import sys; from gcnsl.cli import app; app(['--help'], standalone_mode=False); "
        "print({'torch', 'numpy', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("set()")
    assert re.findall(r"^│ (\w+)  ", done.stdout, re.MULTILINE) == list(COMMANDS), "in the order of their use"
    assert "Exit codes: 0 done; 2 something to mend" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(gcnsl, command) -> None:
    code, out, _ = gcnsl(command, "--help")
    assert code == 0
    assert f"Example: gcnsl {command}" in " ".join(out.split())


def test_help_tells_what_is_taken_by_default(gcnsl) -> None:
    out = " ".join(gcnsl("compare", "--help")[1].replace("│", " ").split())
    assert "[default: mlp,gcn,h2gcn-2,gcn-sl-cc]" in out
    assert "Column of --nodes with the ids. [default: id, or the first]" in out


def test_ctrl_c_anywhere_is_one_line(gcnsl, monkeypatch) -> None:
    def read(self, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(GraphSource, "read", read)
    assert gcnsl("train", "debian") == (cli.INTERRUPTED, "", "Interrupted: before anything was finished\n")


def test_warnings_of_others_say_where_they_come_from(gcnsl, monkeypatch) -> None:
    def read(self, **_):
        warnings.warn("odd", UserWarning, stacklevel=1)
        raise InputError("and wrong")

    monkeypatch.setattr(GraphSource, "read", read)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        _, _, err = gcnsl("inspect", "debian")
    assert err.startswith(f"Warning: {__file__}:")
    assert "UserWarning: odd" in err
    assert err.endswith("Error: and wrong\n")


def epoch(number: int, remaining: int) -> Epoch:
    return Epoch(
        number=number,
        train_loss=1.25,
        val_loss=1.5,
        accuracy={"train": 0.5, "val": 0.75},
        best_epoch=number,
        remaining=remaining,
        seconds=1.0,
    )


@pytest.fixture
def terminal(monkeypatch):
    """Standard error is a terminal, and what is shown there."""
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, force_terminal=True, width=80, color_system=None))
    return shown


def test_progress_of_training(terminal) -> None:
    with epochs_shown(quiet=False) as show:
        for number in range(1, 4):
            show(epoch(number, remaining=10))
    assert "epoch 3  loss 1.250  validation 75.0%" in terminal.getvalue()
    assert "left" in terminal.getvalue()


def test_progress_of_a_comparison(terminal) -> None:
    with runs_shown(6, quiet=False) as (begin, show):
        for run in range(3):
            for name in ("mlp", "gcn"):
                begin(name, run)
                show(epoch(5, remaining=5))
    assert "6/6  gcn on split 2  validation 75.0%" in terminal.getvalue()


def test_quiet_shows_none(terminal) -> None:
    with epochs_shown(quiet=True) as show:
        show(epoch(1, remaining=10))
    with runs_shown(6, quiet=True) as (begin, show):
        begin("mlp", 0)
        show(epoch(1, remaining=10))
    assert terminal.getvalue() == ""


def test_commands_show_progress_on_a_terminal_only(gcnsl, people, terminal) -> None:
    gcnsl("train", *people, *QUICK, "--quiet")
    assert terminal.getvalue() == ""
    gcnsl("train", *people, *QUICK)
    assert "Training" in terminal.getvalue()


def test_percent() -> None:
    assert [percent(share) for share in (0.1234, 1.0, None, float("nan"))] == ["12.3%", "100.0%", "–", "–"]
