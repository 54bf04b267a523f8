"""Results of runs as JSON lines: one record a line, in a file that several processes may append to.

A record is on the disk when :func:`append_records` returns, and a process that is killed while it appends leaves at
most a cut last line, which readers ignore and the next one that appends removes. ``pandas.read_json(path, lines=True)``
reads such a file, and files are merged by ``cat``.
"""

import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from filelock import FileLock

from gcnsl.errors import InputError, one_line
from gcnsl.files import sync, writing

Record = dict[str, Any]
Item = TypeVar("Item")

_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a damaged record raises."""
_LOCK_SECONDS = 60.0
"""How long a process waits for another one that appends."""
_SQLITE = b"SQLite format 3\0"


class ResultsWarning(UserWarning):
    """Lines of a file of results are damaged and count as not there."""


def append_records(path: str | os.PathLike[str], *records: Mapping[str, Any]) -> None:
    """Append records of plain values to a file, which is made if need be; all are on the disk when this returns.

    Raises:
        WriteError: If the file can't be written, or another process keeps it locked.
    """
    lines = "".join(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n" for record in records)
    target = Path(os.path.realpath(path))
    with writing(Path(path)):
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{target.name}.lock"), timeout=_LOCK_SECONDS), target.open("a+b") as file:
            is_new = not file.tell()
            _end_last_line(file)
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync(target.parent)


def read_records(path: str | os.PathLike[str], parse: Callable[[Record], Item]) -> list[Item]:
    """What is made of the records of a file, none if it is not there.

    Damaged lines are left out, with a :class:`ResultsWarning` that names the first of them; a record of which ``parse``
    raises a ``ValueError``, ``KeyError`` or ``TypeError`` is damaged, too.

    Raises:
        InputError: If the file can't be read, or is not one of results.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}): give a file of results") from error
    if content.startswith(_SQLITE):
        export = f"`gcnsl report --store {path} --export results.jsonl`"
        other = "give another file or, if it holds results, install that version and write them with"
        raise InputError(f"{path} is a store of gcnsl 0.2.0: {other} {export}")
    items, damaged = [], []
    for number, line in enumerate(content[: _end_of_whole_lines(content)].split(b"\n"), start=1):
        try:
            items += [parse(_read(line))] if line.strip() else []
        except _DAMAGED as error:  # noqa: PERF203 - one line says nothing of the others
            damaged.append(f"line {number} ({type(error).__name__}: {error})")
    if damaged and not items:
        raise InputError(f"{path} is not a file of results, see {damaged[0]}: give one of JSON lines")
    if damaged:
        told = f"{path}: {len(damaged)} damaged lines count as not there, the first is {damaged[0]}"
        warnings.warn(one_line(told), ResultsWarning, stacklevel=2)
    return items


def _read(line: bytes) -> Record:
    """The record of a line, or an error of :data:`_DAMAGED`."""
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError(f"it must be an object, not {type(record).__name__}")
    return record


def _end_of_whole_lines(content: bytes) -> int:
    """Where the last line ends that is whole: with a line feed, or an object without one, as an editor may leave it."""
    end = content.rfind(b"\n") + 1
    try:
        _read(content[end:])
    except _DAMAGED:
        return end
    return len(content)


def _end_last_line(file: IO[bytes]) -> None:
    """Remove a last line that was cut when a process was killed, or end one that is whole."""
    file.seek(0)
    content = file.read()
    end = _end_of_whole_lines(content)
    if content[end:].startswith(b"{"):
        file.truncate(end)
    elif content and not content.endswith(b"\n"):
        file.write(b"\n")
