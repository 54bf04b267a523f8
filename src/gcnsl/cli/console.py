"""Where the commands print, and how they show that they are at work."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

out, err = Console(), Console(stderr=True)


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """A spinner with a clock on stderr, gone when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.elapsed:.0f} s"))
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        progress.add_task(doing, total=None)
        yield
