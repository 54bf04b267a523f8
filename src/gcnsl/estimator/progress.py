"""How training goes: a bar in a terminal or a notebook, and a line in the log now and then."""

from __future__ import annotations

import html
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from gcnsl.training import METRICS, Epoch

LOGGED_SECONDS = 30
"""How often there is a line in the log (``gcnsl``, level INFO)."""
_LOGGER = logging.getLogger("gcnsl")


def in_words(news: Any) -> str:
    """An :class:`gcnsl.training.Epoch`, or a :class:`gcnsl.auto.Progress` with what is tried and the best so far."""
    if isinstance(news, Epoch):
        return f"epoch {news.number}  {news.validation}"
    best = "" if news.best is None else f"  best {news.best} {METRICS[news.metric].text(news.score)}"
    return f"{news.fits} models{best}" + (f"  now {', '.join(news.now)}" if news.now else "")


def _with_time(news: Any) -> str:
    return f"{in_words(news)}, about {news.seconds_left:.0f} s left"


@contextmanager
def progress(verbose: bool | int) -> Iterator[Callable[[Any], None]]:
    """A function for ``on_epoch``; with ``verbose``, what it is told is shown until the end."""
    console, told, handle = Console(stderr=True), time.monotonic(), list[Any]()
    in_notebook = _in_notebook()
    columns = SpinnerColumn(), BarColumn(bar_width=16), TextColumn("{task.description}", markup=False)
    is_hidden = in_notebook or not verbose or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_hidden) as bar:
        task = bar.add_task("preparing", total=None)

        def listen(news: Any) -> None:
            nonlocal told
            total = news.seconds + news.seconds_left
            bar.update(task, completed=news.seconds, total=total, description=_with_time(news))
            if verbose and in_notebook:
                _show_line(handle, news.seconds / max(total, 1e-9), _with_time(news))
            if time.monotonic() - told > LOGGED_SECONDS:
                told = time.monotonic()
                _LOGGER.info(_with_time(news))

        yield listen


def _show_line(handle: list[Any], share: float, text: str) -> None:
    """Show or change a line of HTML, which needs no widgets; the last one stays."""
    from IPython.display import HTML, display

    line = HTML(f"<progress value='{share:.3f}'></progress> {html.escape(text)}")
    if handle:
        handle[0].update(line)
    else:
        handle.append(display(line, display_id=True))


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
