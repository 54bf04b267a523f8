import io
import itertools
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.table import Table

from gcnsl.cli import console
from gcnsl.cli.console import epochs_shown, print_in_parts, progress, runs_shown
from gcnsl.training import Epoch

from .cases import TRAIN


def epoch(number: int, remaining: int, metric: str = "accuracy") -> Epoch:
    return Epoch(
        number=number,
        train_loss=1.25,
        val_loss=1.5,
        accuracy={"train": 0.5, "val": 0.75},
        metric=metric,
        score=0.75,
        best_epoch=number,
        remaining=remaining,
        seconds=2.0 * number,
        seconds_left=2.0 * remaining,
    )


@pytest.fixture
def terminal(monkeypatch):
    """Standard error is a terminal, and what is shown there."""
    shown = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=shown, force_terminal=True, width=80, color_system=None))
    return shown


def test_progress_of_training(terminal) -> None:
    with epochs_shown(most=800, minutes=None, quiet=False) as show:
        for number in range(1, 4):
            show(epoch(number, remaining=10))
    assert "epoch 3  validation accuracy 75.0%" in terminal.getvalue()
    assert "about 20 s left" in terminal.getvalue()


@pytest.mark.parametrize(("metric", "shown"), [("roc-auc", "roc-auc 75.0%"), ("log-loss", "log-loss 0.750")])
def test_the_metric_that_chooses_epochs_is_shown(terminal, metric, shown) -> None:
    with epochs_shown(most=800, minutes=None, quiet=False) as show:
        show(epoch(1, remaining=10, metric=metric))
    assert f"epoch 1  validation {shown}" in terminal.getvalue()


@pytest.mark.parametrize(
    ("minutes", "limit"),
    [
        (None, "at most 27 min (800 epochs of 2 s); --minutes limits it"),
        (20.0, "at most the 20 of --minutes"),
        (90.0, "at most 27 min (800 epochs of 2 s); --minutes limits it"),
    ],
)
def test_a_long_training_is_announced_once(terminal, minutes, limit) -> None:
    with epochs_shown(most=800, minutes=minutes, quiet=False) as show:
        for number in range(1, 12):
            show(epoch(number, remaining=200))
            assert terminal.getvalue().count("Time:") == (number >= 3)
    shown = f"Time: training takes about 7 min if no epoch improves from now on, and {limit}"
    assert shown in terminal.getvalue().replace("\n", " ")


def test_a_short_training_is_not_announced(terminal) -> None:
    with epochs_shown(most=800, minutes=None, quiet=False) as show:
        for number in range(1, 9):
            show(epoch(number, remaining=10))
    assert "Time:" not in terminal.getvalue()


def test_progress_of_a_comparison(terminal) -> None:
    with runs_shown(6, unit="epoch", quiet=False) as (tell, show):
        for run in range(3):
            for name in ("mlp", "gcn"):
                show(SimpleNamespace(name=name, run=run), epoch(5, remaining=5))
                tell(name, run) if (name, run) != ("gcn", 2) else None
    assert "6/6  gcn, run 2  validation accuracy 75.0%" in terminal.getvalue()
    assert "about 10 s left" in terminal.getvalue()


def test_a_comparison_tells_the_time_left_after_its_first_epoch(terminal) -> None:
    with runs_shown(6, unit="epoch", quiet=False) as (_, show):
        show(SimpleNamespace(name="mlp", run=0), epoch(1, remaining=9))
    assert "about 2 min left" in terminal.getvalue(), "18 s for this run, 20 s for each of the five others"


def test_quiet_shows_none(terminal) -> None:
    with epochs_shown(most=800, minutes=None, quiet=True) as show:
        for number in range(1, 5):
            show(epoch(number, remaining=200))
    with runs_shown(6, unit="epoch", quiet=True) as (tell, show):
        show(SimpleNamespace(name="mlp", run=0), epoch(1, remaining=10))
        tell("mlp", 0)
    assert terminal.getvalue() == ""


def test_commands_show_progress_on_a_terminal_only(gcnsl, people, terminal) -> None:
    gcnsl("train", *people, *TRAIN, "--quiet")
    assert terminal.getvalue() == ""
    gcnsl("train", *people, *TRAIN, "--metric", "macro-f1")
    assert "Training" in terminal.getvalue()
    assert "validation macro-f1" in terminal.getvalue()


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
def test_what_was_done_before_is_no_base_of_an_estimate() -> None:
    with progress("Working", 10, unit="trial", quiet=True) as bar:
        bar.update(completed=6)
        assert bar.time_left() == "the first trial will tell the time left"
        bar.update(completed=7)
        assert bar.time_left().startswith("about ")


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
