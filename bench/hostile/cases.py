"""A case, the process it runs in, and the verdict on it.

Cases run in another process, so that one that hangs or dies is noticed. A process judges many cases, because importing
things anew for each of them would take longer than the cases themselves.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
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
CASES_IN_A_PROCESS = 200


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


def judge_apart(cases: Sequence[Case]) -> Iterator[tuple[str, str]]:
    """The same for each of several cases, in a process that is replaced when a case hangs or kills it."""
    done = 0
    while done < len(cases):
        for verdict in _in_a_process(cases[done : done + CASES_IN_A_PROCESS]):
            yield verdict
            done += 1


def _in_a_process(cases: Sequence[Case]) -> Iterator[tuple[str, str]]:
    """The verdicts on cases up to the first that hangs or kills the process."""
    fork = multiprocessing.get_context("fork")  # functions of cases can't be pickled
    reading, writing = fork.Pipe(duplex=False)
    process = fork.Process(target=_judge_all, args=(cases, writing))
    process.start()
    writing.close()
    try:
        for case in cases:
            if not reading.poll(case.seconds):
                yield "hung", f"no end within {case.seconds} seconds"
                return
            try:
                yield reading.recv()
            except EOFError:
                process.join()
                yield "died", f"exit code {process.exitcode}"
                return
    finally:
        reading.close()
        process.kill()
        process.join()


def _judge_all(cases: Sequence[Case], writing: Connection) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for case in cases:
        writing.send(judge(case))


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


def run_cases(
    cases: Iterable[Case], *, apart: bool = True, progress: bool = False, minutes: float | None = None
) -> Verdicts:
    """Judge cases one after the other, and begin none after so many minutes."""
    cases, verdicts = list(cases), Verdicts()
    judged = judge_apart(cases) if apart else map(judge, cases)
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes
    for case, verdict in track(zip(cases, judged, strict=True), total=len(cases), disable=not progress, transient=True):
        verdicts.add(case, *verdict)
        if time.monotonic() > end:
            break
    return verdicts
