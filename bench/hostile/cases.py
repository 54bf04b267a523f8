"""A case, the process it runs in, and the verdict on it.

Every case runs in a process of its own, so that one that hangs or dies is noticed and spoils no other.
"""

from __future__ import annotations

import json
import os
import select
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from gcnsl.errors import GcnslError

GOOD = ("worked", "refused")
BAD = ("accepted", "foreign", "wordy", "hung", "died")
"""Wrongly accepted; an error that is not the package's own; a refusal that is not one line of at most 300 characters;
no end within the time; a process that died."""
LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Case:
    """Something to try.

    Attributes:
        group: The row of the summary.
        name: Which case of the group, for the list of those that went wrong.
        call: Does it.
        fault: Says what is wrong with the result of the call, or nothing: "" if it is right.
        seconds: How long it may take.
    """

    group: str
    name: str
    call: Callable[[], Any]
    fault: Callable[[Any], str] = lambda _: ""
    seconds: float = 60


def must_be_refused(_: Any) -> str:
    """The fault of whatever a call that had to be refused has returned."""
    return "it was accepted"


def judge(case: Case) -> tuple[str, str]:
    """The verdict on a case, run in this process, and what happened."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = case.call()
    except GcnslError as error:
        text = str(error)
        wordy = "\n" in text or len(text) > LONGEST_MESSAGE
        return ("wordy", f"{len(text)} characters: {text[:200]!r}") if wordy else ("refused", text)
    except BaseException as error:  # whatever it is, it is not ours
        return "foreign", f"{type(error).__name__}: {error}"[:300]
    fault = case.fault(result)
    return ("accepted", fault) if fault else ("worked", "")


def judge_apart(case: Case) -> tuple[str, str]:
    """The same in a process of its own, which is killed after the case's time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            os.write(writing, json.dumps(judge(case)).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(writing)
    answered, _, _ = select.select([reading], [], [], case.seconds)
    answer = os.read(reading, 65_536) if answered else b""
    os.close(reading)
    if not answered:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not answered:
        return "hung", f"no end within {case.seconds} seconds"
    if not answer:
        return "died", f"exit status {status}"
    verdict, what = json.loads(answer)
    return verdict, what


class Verdicts:
    """The verdicts by group, and what went wrong."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.wrong: list[tuple[str, str, str, str]] = []

    def add(self, case: Case, verdict: str, what: str) -> None:
        """Count a verdict."""
        self.counts.setdefault(case.group, Counter())[verdict] += 1
        if verdict in BAD:
            self.wrong.append((case.group, case.name, verdict, what))

    @property
    def total(self) -> Counter[str]:
        """The counts of all groups."""
        return sum(self.counts.values(), Counter())

    def show(self, console: Console, most: int = 40) -> None:
        """Print what went wrong, at most so many cases, and the summary."""
        for group, name, verdict, what in self.wrong[:most]:
            console.print(f"{verdict}: {group}: {name}: {what}", style="red", markup=False, highlight=False)
        table = Table("", "cases", *GOOD, *BAD)
        for group, counts in [*sorted(self.counts.items()), ("all", self.total)]:
            table.add_row(group, *(str(number) for number in (counts.total(), *(counts[name] for name in GOOD + BAD))))
        console.print(table)


def run_cases(cases: Iterable[Case], *, apart: bool = True, progress: bool = False) -> Verdicts:
    """Judge cases one after the other."""
    verdicts = Verdicts()
    for case in track(list(cases), disable=not progress, transient=True):
        verdicts.add(case, *(judge_apart(case) if apart else judge(case)))
    return verdicts
