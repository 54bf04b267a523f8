"""`reproduce` and `search` on a disk that is full or read-only, or with files that another process has locked.

They end in one line, keep what was finished, and complete their work once the disturbance is over. The disks are
mounted in a namespace of this program, so Linux with ``unshare`` is needed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.hostile.cases import LONGEST_MESSAGE, Case
from bench.hostile.kills import (
    COMMANDS,
    SECONDS,
    Command,
    attempt,
    completed,
    is_lost,
    undisturbed,
    write_tables,
)
from filelock import FileLock

from gcnsl.runs import results

ENDLESS = True
PLACES = ("full", "read-only", "locked")
SMALLEST, LARGEST = 24, 400
"""Sizes of a disk that becomes full, in kB; the tables need 12."""
SHORT_OF_PATIENCE = 0.5
"""Seconds to wait for a lock, instead of a minute."""
_OWN_MOUNTS = "GCNSL_HOSTILE_OWN_MOUNTS"


def cases(rng: random.Random) -> Iterator[Case]:
    """Commands in difficult places, without end."""
    _be_impatient()
    known: dict[Command, tuple[float, Any]] = {}
    while True:
        command, how, seed = rng.choice(COMMANDS), rng.choice(PLACES), rng.randrange(2**31)
        if command not in known:
            known[command] = undisturbed(command)
        name, call = type(command).__name__.lower(), partial(disturbed, command, how, *known[command], seed)
        yield Case(f"places, {how}", f"{name}, seed {seed}", call, str, SECONDS)


def disturbed(command: Command, how: str, seconds: float, expected: Any, seed: int) -> str:
    """What is wrong with a command that was disturbed, perhaps after it had begun, and then repeated undisturbed."""
    rng = random.Random(seed)
    with _disk() as folder:
        write_tables(folder)
        if rng.random() < 0.5:  # there is something to be lost
            attempt(command, folder, rng.uniform(0, seconds))
        before = command.finished(folder)
        with _disturbance(how, command, folder, rng):
            ended = attempt(command, folder, SECONDS)
        if ended is None:
            return "it hung"
        if ended.code not in (0, 2) or "Traceback" in ended.output:
            return f"exit code {ended.code}: {ended.output[-300:]}"
        if ended.code == 2 and not _is_told(ended.output):
            return f"it is not told in one line: {ended.output[-600:]}"
        if is_lost(before, command.finished(folder)):
            return "something finished is lost or was done again"
        return completed(command, folder, expected)


def _is_told(output: str) -> bool:
    """Whether the last thing that was printed is an error, which the console may have broken into lines.

    What follows from a file of another package is its farewell: the process ends as soon as the command does.
    """
    error = output.rpartition("Error: ")[2].partition("\n/")[0]
    return "Error: " in output and len(error) <= LONGEST_MESSAGE + 20


@contextmanager
def _disk() -> Iterator[Path]:
    """A disk of its own, large enough."""
    with tempfile.TemporaryDirectory() as folder:
        _mount("-t", "tmpfs", "-o", "size=64m", "tmpfs", folder)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def _disturbance(how: str, command: Command, folder: Path, rng: random.Random) -> Iterator[None]:
    """Make a disk full or read-only, or lock the file that a command writes, while this block runs."""
    if how == "locked":
        with _lock(command, folder):
            yield
        return
    used = sum(path.stat().st_blocks for path in folder.rglob("*")) // 2
    size = f"size={used + rng.randint(SMALLEST, LARGEST) // 4 * 4}k"
    _mount("-o", f"remount,{'ro' if how == 'read-only' else size}", str(folder))
    try:
        yield
    finally:
        _mount("-o", "remount,rw,size=64m", str(folder))


@contextmanager
def _lock(command: Command, folder: Path) -> Iterator[None]:
    with FileLock(folder / f".{command.file}.lock"):
        yield


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def _be_impatient() -> None:
    results._LOCK_SECONDS = SHORT_OF_PATIENCE


def enter_own_namespace() -> None:
    """Start this program again where its disks are invisible to all others, unless that was done."""
    if os.environ.get(_OWN_MOUNTS) is None:
        again = [sys.executable, "-m", "bench.hostile", *sys.argv[1:]]
        command = ["unshare", "--map-root-user", "--mount", *again]
        os.execvpe(command[0], command, os.environ | {_OWN_MOUNTS: "1"})
