"""Where the commands print, and how they show that they are at work."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

if TYPE_CHECKING:
    from gcnsl.training import Epoch

out, err = Console(), Console(stderr=True)
NEWS_SECONDS = 30
"""How often progress is reported where no bar can be drawn."""


class ProgressBar:
    """Work that is under way; :func:`progress` makes one.

    Args:
        bar: What draws it.
        task: Its number there.
        description: What is being done.
    """

    def __init__(self, bar: Progress, task: TaskID, description: str) -> None:
        self._bar, self._task, self._description = bar, task, description
        self._began = self._told = time.monotonic()
        self._first: float | None = None

    def update(self, *, completed: float | None = None, total: float | None = None, text: str | None = None) -> None:
        """Show how much is done, of how much, and a few words about it."""
        if self._first is None and completed is not None:
            self._first = 0.0 if completed <= 1 else completed - 1  # what an earlier call has done took no time of ours
        self._bar.update(self._task, completed=completed, total=total, text=self._text if text is None else text)
        self._bar.update(self._task, left=self.time_left())
        if self._bar.disable and not err.is_terminal and time.monotonic() - self._told > NEWS_SECONDS:
            self._told = time.monotonic()
            said = ", ".join(filter(None, (f"{self._description}: {self._text}", self.time_left())))
            err.print(said, highlight=False, markup=False, soft_wrap=True)

    def time_left(self) -> str:
        """In words, from the speed so far; empty before anything is done."""
        task = self._bar.tasks[0]
        done = task.completed - (self._first or 0.0)
        if not task.total or done <= 0:
            return ""
        seconds = (time.monotonic() - self._began) * max(0.0, task.total - task.completed) / done
        return f"about {duration(seconds)} left"

    @property
    def _text(self) -> str:
        return str(self._bar.tasks[0].fields["text"])


@contextmanager
def progress(description: str, total: float | None = None, *, quiet: bool = False) -> Iterator[ProgressBar]:
    """A bar on stderr with the time left, gone when the work is done; without a terminal, a line now and then.

    Args:
        description: What is being done.
        total: How much there is to do, in any unit; ``None`` until it is known.
        quiet: Show nothing.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[text]}"),
        TextColumn("{task.fields[left]}", style="cyan"),
    )
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        shown = ProgressBar(bar, bar.add_task(description, total=total, text="", left=""), description)
        if quiet:
            shown._told = math.inf
        yield shown


@contextmanager
def busy(doing: str, *, quiet: bool = False) -> Iterator[None]:
    """A spinner with a clock on stderr, gone when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.elapsed:.0f} s"))
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        bar.add_task(doing, total=None)
        yield


@contextmanager
def epochs_shown(*, quiet: bool) -> Iterator[Callable[[Epoch], None]]:
    """A bar over the epochs of one training; gives what is to be called after each.

    It fills up to the epoch in which training ends if none improves, so the time left is that until then.
    """
    with progress("Training", quiet=quiet) as bar:

        def show(epoch: Epoch) -> None:
            text = f"epoch {epoch.number}  loss {epoch.train_loss:.3f}  validation {epoch.accuracy['val']:.1%}"
            bar.update(completed=epoch.number, total=epoch.number + epoch.remaining, text=text)

        yield show


@contextmanager
def runs_shown(total: int, *, quiet: bool) -> Iterator[tuple[Callable[[str, int], None], Callable[[Epoch], None]]]:
    """A bar over many trainings; gives what is to be called before each of them, and after each epoch."""
    with progress("Comparing", total, quiet=quiet) as bar:
        begun, name = 0, ""

        def begin(method: str, run: int) -> None:
            nonlocal begun, name
            begun, name = begun + 1, f"{begun + 1}/{total}  {method} on split {run}"
            bar.update(completed=begun - 1, text=name)

        def show(epoch: Epoch) -> None:
            part = epoch.number / (epoch.number + epoch.remaining)
            bar.update(completed=begun - 1 + part, text=f"{name}  validation {epoch.accuracy['val']:.1%}")

        yield begin, show


def duration(seconds: float) -> str:
    """A time in words, as exact as one would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def print_json(value: Any) -> None:
    """Print plain values as JSON; NaN and infinity become null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; a dash for none."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def print_path(what: str, path: Any) -> None:
    """Say where something was written, in one line that can be copied."""
    out.print(f"{what}: {path}", highlight=False, markup=False, soft_wrap=True)
