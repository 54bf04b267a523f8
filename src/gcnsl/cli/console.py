"""Where the commands print, and how they show that they are at work."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from gcnsl.evaluation import Measured

out, err = Console(), Console(stderr=True)
_NAMED, _LISTED = 8, 40
"""Of more classes, only these are named in a line, or have a row in a table."""
NEWS_SECONDS = 30
"""How often progress is reported where no bar can be drawn."""


class ProgressBar:
    """Work that is under way; :func:`progress` makes one."""

    def __init__(self, bar: Progress, description: str, total: float | None, *, unit: str, quiet: bool) -> None:
        self._bar, self._description, self._text, self._first = bar, description, "", math.inf
        self._awaited = f"the first {unit} will tell the time left"
        self._task = bar.add_task(description, total=total, text="", left=self._awaited)
        self._began = self._told = time.monotonic()
        self._in_lines = not quiet and not err.is_terminal

    def update(
        self,
        *,
        completed: float,
        total: float | None = None,
        text: str | None = None,
        seconds_left: float | None = None,
    ) -> None:
        """Show how much is done, of how much, a few words about it, and the time left, by default from the speed.

        What the first call gives as ``completed`` was done earlier, and says nothing about the speed.
        """
        self._first = min(self._first, completed)
        self._text = self._text if text is None else text
        self._bar.update(self._task, completed=completed, total=total, text=self._text)
        left = self.time_left() if seconds_left is None else f"about {duration(seconds_left)} left"
        self._bar.update(self._task, left=left)
        if self._in_lines and time.monotonic() - self._told > NEWS_SECONDS:
            self._told = time.monotonic()
            say(self._description, f"{self._text}, {left}")

    def time_left(self) -> str:
        """In words, from the speed so far; before anything is done, what has to be done for an estimate."""
        task = self._bar.tasks[0]
        done = task.completed - self._first
        if not task.total or done <= 0:
            return self._awaited
        seconds = (time.monotonic() - self._began) * max(0.0, task.total - task.completed) / done
        return f"about {duration(seconds)} left"


@contextmanager
def progress(
    description: str, total: float | None = None, *, unit: str = "epoch", quiet: bool = False
) -> Iterator[ProgressBar]:
    """A bar on stderr with the time left, gone when the work is done; without a terminal, a line now and then.

    ``total`` is how much there is to do, in any unit; ``None`` until it is known. ``unit`` is the word for a step, the
    first of which gives an estimate.
    """
    doing, text, left = (TextColumn(f"{{task.{name}}}") for name in ("description", "fields[text]", "fields[left]"))
    columns = (SpinnerColumn(), doing, BarColumn(bar_width=16 if err.width >= 100 else 4), text, left)
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        yield ProgressBar(bar, description, total, unit=unit, quiet=quiet)


@contextmanager
def busy(doing: str, *, quiet: bool = False) -> Iterator[None]:
    """A spinner with a clock on stderr, gone when the work is done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.elapsed:.0f} s"))
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        bar.add_task(doing, total=None)
        yield


def duration(seconds: float) -> str:
    """A time in words, as exact as one would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; a dash for none."""
    return "–" if share is None or math.isnan(share) else f"{share:.1%}"


def say(what: str, sentence: object, style: str = "", *, where: Console | None = None) -> None:
    """Print one line that can be copied, on stderr unless told otherwise."""
    line = Text.assemble((f"{what}:", style), f" {sentence}")  # at once, or a bar would be drawn in between
    (where or err).print(line, highlight=False, soft_wrap=True)


def in_shell(words: Iterable[object]) -> str:
    """A command or a part of it, ready to be copied into a shell; control characters are written as bash reads them."""
    return " ".join(shlex.quote(word) if word.isprintable() else _with_escapes(word) for word in map(str, words))


def _with_escapes(word: str) -> str:
    plain = (c if c.isprintable() and c not in "\\'" else f"\\U{ord(c):08x}" for c in word)
    return f"$'{''.join(plain)}'"


def listed(names: Iterable[str]) -> str:
    """Names separated by commas, in quotes where they need them, as in a CSV file."""
    plain = re.compile(r'(?!\s)[^,"\r\n]+(?<!\s)')
    return ",".join(name if plain.fullmatch(name) else '"' + name.replace('"', '""') + '"' for name in names)


def print_json(value: Any) -> None:
    """Print plain values as JSON; NaN and infinity become null."""
    plain = json.loads(json.dumps(value), parse_constant=lambda _: None)
    print(json.dumps(plain, indent=2, ensure_ascii=False))


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print names and values, which may have markup."""
    table = Table(title=escape(title), title_style="bold", show_header=False)
    table.add_column(style="cyan")
    table.add_column()
    for name, value in facts.items():
        table.add_row(name, value)
    out.print(table)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Iterable[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    right: Container[str] = (),
) -> None:
    """Print a table whose cells may have markup; the columns in ``right`` are aligned to the right."""
    table = Table(title=title and escape(title), caption=caption, title_style="bold", title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*row)
    out.print(table)


def metric_facts(measured: Measured | None, metric: str | None) -> dict[str, str]:
    """All metrics with their intervals, for a table of facts, the chosen one in bold; ``None`` without test nodes."""
    from gcnsl.evaluation.intervals import interval_text
    from gcnsl.training import METRICS

    if measured is None:
        return {"test accuracy": "–  [dim]no node was held back[/]"}
    facts = {}
    for name, value in measured.metrics.items():
        interval = interval_text(measured.intervals.get(name), is_share=METRICS[name].is_share)
        title = f"[bold]test {name}[/]" if name == (metric or "accuracy") else f"test {name}"
        facts[title] = f"{METRICS[name].text(value)} {interval}"
    return facts | {"test nodes": f"{measured.nodes:,} [dim](95 % intervals in brackets)[/]"}


def _with_interval(share: float | None, interval: tuple[float, float] | None = None) -> str:
    from gcnsl.evaluation.intervals import interval_text

    return f"{percent(share)} {interval_text(interval)}".rstrip()


def decision_facts(measured: Measured) -> dict[str, str]:
    """The threshold and what it finds, the coverage of prediction sets, and whether probabilities can be believed."""
    facts, threshold, kind = {}, measured.threshold, measured.kind
    if threshold is not None:
        name, each = escape(measured.class_names[threshold.positive]), measured.classes[threshold.positive]
        rule = f"{threshold.rule}{'' if threshold.met else ', which no threshold keeps'}"
        known = f"{threshold.nodes:,} labelled nodes with {threshold.positives:,} {name}"
        known += f", where {threshold.found:,} of {threshold.alerts:,} alerts are right" if threshold.alerts else ""
        facts[f"threshold for {name}"] = f"{threshold.value:.4g} [dim]({rule}; chosen on {known})[/]"
        precision, recall = each.precision, each.recall
        told = f"precision {_with_interval(precision, each.precision_interval)}"
        told += f", recall {_with_interval(recall, each.recall_interval)}"
        facts["its alerts"] = f"{each.predicted:,} of {measured.nodes:,} {kind} nodes: {told}"
    if measured.likeliest:
        some = measured.likeliest[:4]
        facts[f"likeliest {', '.join(str(each.alerts) for each in some)}"] = (
            f"{', '.join(str(each.found) for each in some)} are {escape(measured.class_names[measured.positive or 0])}"
        )
    for sets in measured.coverage[1:2]:
        sizes = f"{sets.mean_size:.2f} classes on average, {percent(sets.alone)} with one"
        share = _with_interval(sets.measured, sets.interval)
        facts[f"sets for {sets.promised:.0%}"] = f"hold the class of {share} of the {kind} nodes [dim]({sizes})[/]"
    if measured.believed is not None:
        remedy = f" [yellow]Remedy: {measured.believed.remedy}.[/]" if measured.believed.remedy else ""
        facts["probabilities"] = f"{measured.believed.words}{remedy}"
    return facts


def print_never_predicted(measured: Measured) -> None:
    """Name the classes that are predicted for no node although there are some."""
    if never := measured.never_predicted:
        largest = sorted(never, key=lambda each: -each.nodes)
        names = ", ".join(f"{each.name} ({each.nodes:,})" for each in largest[:_NAMED])
        names += f" and {len(never) - _NAMED:,} other classes" if len(never) > _NAMED else ""
        told = f"of the {measured.nodes:,} {measured.kind} nodes, none is predicted to be {names}"
        remedy = "--threshold with --positive CLASS, or --class-weight, finds some"
        say("Never predicted", f"{told}; {remedy}", "yellow", where=out)


def print_classes(measured: Measured) -> None:
    """Print a table with one row per class, the largest ones if there are many."""
    largest = sorted(range(len(measured.classes)), key=lambda c: -measured.classes[c].nodes)[:_LISTED]
    rows = (
        (
            escape(each.name),
            f"{each.nodes:,}",
            _with_interval(each.precision, each.precision_interval),
            _with_interval(each.recall, each.recall_interval),
            percent(each.f1),
        )
        for each in (measured.classes[c] for c in sorted(largest))
    )
    numbers = ("test nodes", "precision", "recall", "F1")
    print_table(("class", *numbers), rows, right=numbers)
    if left := len(measured.classes) - len(largest):
        out.print(f"{left:,} smaller classes are not shown; --json and the page have all.", highlight=False)


def print_in_parts(part: Callable[[Sequence[str]], Table], columns: Sequence[str]) -> None:
    """Print a wide table in as many parts as the terminal needs, each made of some columns; a file gets one part."""

    def width(some: Sequence[str]) -> int:
        unlimited = out.options.update(width=10_000)
        return Measurement.get(out, unlimited, part(some)).maximum

    while columns:
        fitting = len(columns)
        while out.is_terminal and fitting > 1 and width(columns[:fitting]) > out.width:
            fitting -= 1
        shown, columns = columns[:fitting], columns[fitting:]
        place = out if out.is_terminal else Console(file=out.file, width=width(shown))
        place.print(part(shown))
