"""`reproduce` and `search`, killed at any moment and given again: nothing finished is lost or done twice.

:mod:`bench.hostile.faults` does this and more to ``train``.

Each case is a command that is killed four times, and begins in a new folder whenever it ends before it is killed. A
process that has imported everything is forked for each attempt, so that a kill hits the command rather than its
imports.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pandas as pd
from bench.hostile.cases import Case

import gcnsl
from gcnsl import cli
from gcnsl.experiments.records import read_results

ENDLESS = True
SECONDS = 900
"""More than a command takes that is killed and repeated a few times."""
GRAPH = "--nodes nodes.csv --edges edges.csv"
KILLS = 4


class Command(ABC):
    """A command, what it has finished at any moment, and what it leaves in the end."""

    arguments: str
    file: str
    """The file that it writes to."""

    @abstractmethod
    def finished(self, folder: Path) -> dict[str, Any]:
        """What must be there, unchanged, after any kill from now on."""

    @abstractmethod
    def result(self, folder: Path) -> Any:
        """What must be the same as without kills."""


class Ended(NamedTuple):
    """The exit code of a command that has ended, and what it has printed."""

    code: int
    output: str


class Reproduce(Command):
    """Runs of an experiment: each is in the store once, with the same numbers."""

    arguments = "reproduce accuracy --methods mlp --datasets synthetic-h0.5 --splits random --runs 3 --jobs 1"
    file = "results.jsonl"

    def finished(self, folder: Path) -> dict[str, Any]:
        """The results in the store."""
        path = folder / self.file
        return {found.spec: found for found in read_results(path)} if path.exists() else {}

    def result(self, folder: Path) -> Any:
        """The numbers."""
        return {key: (found.status, found.metrics) for key, found in self.finished(folder).items()}


class Search(Command):
    """Trials of a search: as many as were asked for, and settings in the end."""

    arguments = f"search {GRAPH} --method mlp --trials 5 --runs 1 --study study.jsonl -o found.toml"
    file = "study.jsonl"

    def finished(self, folder: Path) -> dict[Any, Any]:
        """The finished trials."""
        path = folder / self.file
        lines = path.read_text().splitlines() if path.exists() else []
        return dict(enumerate(line for line in lines if line.endswith("}")))

    def result(self, folder: Path) -> Any:
        """The number of trials, and all files."""
        return len(self.finished(folder)), _names(folder)


COMMANDS: tuple[Command, ...] = (Reproduce(), Search())


def _names(folder: Path) -> list[str]:
    """All files, except for what was being written when a command was killed: others may be writing it still."""
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".part", ".lock"))


LOADED_LATE = ("gcnsl.auto.search", "gcnsl.evaluation.measured", "gcnsl.experiments.run")
"""What the commands import when they need it, which takes seconds."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Commands that are killed, without end."""
    for module in LOADED_LATE:
        import_module(module)
    known: dict[Command, tuple[float, Any]] = {}
    while True:
        command = rng.choice(COMMANDS)
        if command not in known:
            known[command] = undisturbed(command)
        name, seed = type(command).__name__.lower(), rng.randrange(2**31)
        call = partial(killed_and_repeated, command, *known[command], seed)
        yield Case(f"kills, {name}", f"seed {seed}", call, str, SECONDS)


def killed_and_repeated(command: Command, seconds: float, expected: Any, seed: int) -> str:
    """What is wrong after a command was killed several times, and repeated until it ended; nothing is "".

    Args:
        command: The command.
        seconds: How long it takes undisturbed.
        expected: Its result then.
        seed: Of the moments at which it is killed.
    """
    rng, kills = random.Random(seed), 0
    while kills < KILLS:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            folder, before = Path(place), dict[str, Any]()
            write_tables(folder)
            while kills < KILLS and attempt(command, folder, rng.uniform(0, seconds)) is None:
                kills += 1
                now = command.finished(folder)
                if is_lost(before, now):
                    return "something finished is lost or was done again"
                before = now
            seconds *= 1 if before or kills else 0.8  # it may be faster now
            fault = completed(command, folder, expected)
            if fault:
                return fault
    return ""


def is_lost(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether something that was finished is there no longer, or has changed."""
    return any(now.get(name) != value for name, value in before.items())


def completed(command: Command, folder: Path, expected: Any) -> str:
    """What is wrong with the result of a command that was disturbed before and is now given for the last time."""
    ended = attempt(command, folder, SECONDS)
    if ended is None:
        return f"it did not end within {SECONDS} seconds"
    if ended.code != 0:
        return f"exit code {ended.code}: {ended.output[-200:]}"
    return "" if command.result(folder) == expected else f"the result is {str(command.result(folder))[-200:]}"


def undisturbed(command: Command) -> tuple[float, Any]:
    """How long a command takes, and its result."""
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        began = time.monotonic()
        ended = attempt(command, Path(folder), SECONDS)
        assert ended is not None
        assert ended.code == 0, ended.output
        return time.monotonic() - began, command.result(Path(folder))


def write_tables(folder: Path) -> None:
    """Write a small graph, as two files."""
    data = gcnsl.synthetic(n=60, classes=3, degree=4.0, features=6)
    nodes = pd.DataFrame(data.x.numpy()).add_prefix("f").assign(label=data.y.numpy()).rename_axis("id")
    nodes.to_csv(folder / "nodes.csv")
    pd.DataFrame(data.edge_index.T.numpy(), columns=["source", "target"]).to_csv(folder / "edges.csv", index=False)


def attempt(command: Command, folder: Path, seconds: float) -> Ended | None:
    """Give a command in a process of its own; ``None`` if it had to be killed after so many seconds."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _give(command, folder, output.fileno())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                output.seek(0)
                return Ended(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"))
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return None


def _give(command: Command, folder: Path, output: int) -> NoReturn:
    """Be the command from now on."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    sys.argv = ["gcnsl", *command.arguments.split(), "--device", "cpu", "--quiet"]
    code = 1
    try:
        cli.main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
