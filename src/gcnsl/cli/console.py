"""Where the commands print, and how they show that they are at work."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from gcnsl.training import Epoch

out, err = Console(), Console(stderr=True)
_WINDOW_SECONDS = 300.0
"""The speed of so many last seconds foretells the time left."""


@contextmanager
def busy(doing: str, *, quiet: bool = False) -> Iterator[None]:
    """A spinner with a clock on stderr, gone when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.elapsed:.0f} s"))
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
        progress.add_task(doing, total=None)
        yield


@contextmanager
def epochs_shown(*, quiet: bool) -> Iterator[Callable[[Epoch], None]]:
    """A bar over the epochs of one training on stderr; gives what is to be called after each.

    It fills up to the epoch in which training ends should none improve, so that the time left is the longest possible
    until an epoch does.
    """
    with _bar("{task.fields[epoch]}", quiet=quiet) as progress:
        task = progress.add_task("Training", total=None, epoch="")

        def show(epoch: Epoch) -> None:
            text = f"epoch {epoch.number}  loss {epoch.train_loss:.3f}  validation {epoch.accuracy['val']:.1%}"
            total = epoch.number + epoch.remaining
            progress.update(task, completed=epoch.number, total=total, epoch=text)

        yield show


@contextmanager
def runs_shown(total: int, *, quiet: bool) -> Iterator[tuple[Callable[[str, int], None], Callable[[Epoch], None]]]:
    """A bar over many trainings on stderr; gives what is to be called before each of them, and after each epoch."""
    with _bar("{task.fields[now]}", quiet=quiet) as progress:
        task = progress.add_task("Comparing", total=total, now="")
        begun, name = 0, ""

        def begin(method: str, run: int) -> None:
            nonlocal begun, name
            begun, name = begun + 1, f"{begun + 1}/{total}  {method} on split {run}"
            progress.update(task, completed=begun - 1, now=name)

        def show(epoch: Epoch) -> None:
            part = epoch.number / (epoch.number + epoch.remaining)
            text = f"{name}  validation {epoch.accuracy['val']:.1%}"
            progress.update(task, completed=begun - 1 + part, now=text)

        yield begin, show


def _bar(text: str, *, quiet: bool) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn(text),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    return Progress(
        *columns,
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
        speed_estimate_period=_WINDOW_SECONDS,
    )


def print_json(value: Any) -> None:
    """Print plain values as JSON; what is no number is null there."""
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
