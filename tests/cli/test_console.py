import io
import itertools

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from gcnsl.cli import console
from gcnsl.cli.console import print_in_parts, progress
from gcnsl.evaluation import Measured

from .cases import TRAIN


@pytest.fixture
def terminal(monkeypatch):
    """Standard error is a terminal, and what is shown there."""
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, force_terminal=True, width=80, color_system=None))
    return shown


def test_commands_show_progress_on_a_terminal_only(gcnsl, people, terminal) -> None:
    gcnsl("train", *people, *TRAIN, "--quiet")
    assert terminal.getvalue() == ""
    gcnsl("train", *people, *TRAIN, "--metric", "macro-f1")
    assert "Training" in terminal.getvalue()
    assert "validation macro-f1" in terminal.getvalue()
    gcnsl("compare", *people, "--models", "mlp", "--set", "epochs=3", "--runs", 2)
    assert "2/2  mlp, run 1" in terminal.getvalue()


@pytest.fixture
def clock(monkeypatch):
    """Ten seconds pass between any two looks at the clock."""
    ticks = itertools.count(0, 10)
    monkeypatch.setattr(console.time, "monotonic", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_the_time_left_is_an_estimate_from_the_first_step_on(terminal) -> None:
    with progress("Working", 4) as bar:
        assert bar.time_left() == "the first epoch will tell the time left"
        bar.update(completed=0)
        bar.update(completed=1, text="one of four")
        assert bar.time_left().startswith("about ")
        bar.update(completed=4)
        assert bar.time_left() == "about 0 s left"
    assert "one of four" in terminal.getvalue()


@pytest.mark.usefixtures("clock")
def test_without_a_terminal_a_line_now_and_then(monkeypatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, width=80))
    with progress("Working", 100) as bar:
        for step in range(1, 9):
            bar.update(completed=step, text=f"step {step}")
    lines = shown.getvalue().splitlines()
    assert 1 <= len(lines) < 8
    assert lines[0].startswith("Working: step ")
    assert lines[0].endswith(" left")
    shown.truncate(0)
    with progress("Working", 100, quiet=True) as bar:
        bar.update(completed=50, text="half")
    assert "Working" not in shown.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_wide_tables_come_in_parts_that_fit_a_terminal(monkeypatch, terminal) -> None:
    shown, columns = io.StringIO(), [f"column {number}" for number in range(12)]
    monkeypatch.setattr(
        console, "out", Console(file=shown, force_terminal=terminal, width=60, color_system=None, legacy_windows=False)
    )

    def part(some):
        table = Table("")
        for heading in some:
            table.add_column(heading)
        table.add_row("row", *(heading.replace("column", "value") for heading in some))
        return table

    print_in_parts(part, columns)
    printed = shown.getvalue()
    assert [printed.count(f"{word} {number} ") for word in ("column", "value") for number in range(12)] == [1] * 24
    assert printed.count("row") == (3 if terminal else 1)
    assert (max(map(len, printed.splitlines())) <= 60) is terminal


MEASURED = Measured(np.eye(3)[[0, 1, 1, 1]], np.array([0, 1, 1, 0]), ["[red]", "blue", "green"])
