"""Finished runs in one SQLite file that several processes may write to.

Every result is written as soon as its run is finished, so a run that is killed leaves nothing behind but a mark that it
was begun. A good result is never replaced; a failure is replaced by any later result of the same run. A damaged row
counts as a run that was not made: there is a :class:`StoreWarning`, and the next result of the run replaces it.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from gcnsl.errors import InputError, one_line
from gcnsl.experiments.field_types import check_fields, fits
from gcnsl.experiments.spec import LATER_OPTIONS, RunSpec
from gcnsl.files import writing
from gcnsl.methods import METHODS

Status = Literal["ok", "failed"]

_VERSION = 1
_WAIT_SECONDS = 600.0
"""How long a process waits for another one that is writing, or for a full disk to be freed."""
_PAUSE_SECONDS = 10.0
"""After so long it says that it is waiting."""
_ALWAYS_NUMBERS = ("train", "val", "test", "train_nodes", "test_nodes", "epochs", "best_epoch", "validation", "trials")
"""Metrics that are defined for every run that has them. Others may be ``None``."""
_JSON_COLUMNS = ("spec", "metrics", "history")

Answer = TypeVar("Answer")


class StoreWarning(UserWarning):
    """A store of results is locked or its disk is full, and is waited for; or a row in it is damaged."""


@dataclass(frozen=True)
class RunResult:
    """The result of a run; times are in UTC (ISO 8601), and errors in one line.

    Among the metrics are the accuracies ``train``, ``val`` and ``test``, ``train_nodes``, ``test_nodes``, ``epochs``,
    ``best_epoch`` and ``homophily``; those of a search are ``validation``, ``trials`` and the ``options`` that it has
    found. The seconds are without preparing the graph, the hash is the beginning of the SHA-256 of the run's three
    masks, and the history has curves if the specification asks for them.
    """

    spec: RunSpec
    status: Status
    metrics: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    device: str = ""
    version: str = ""
    split_hash: str = ""
    error: str = ""
    history: dict[str, list[float]] = field(default_factory=dict)
    finished: str = ""


COLUMNS = tuple(field.name for field in fields(RunResult))


def checked(result: RunResult) -> RunResult:
    """Return a result that was read from a file, or raise a ``ValueError`` that names what it can't have."""
    check_fields(result)
    numbers = {name: value for name, value in result.metrics.items() if name != "options"}
    certain = {name: value for name, value in numbers.items() if name in _ALWAYS_NUMBERS}
    found = result.metrics.get("options", None if result.spec.task == "search" and result.status == "ok" else {})
    if not (fits(numbers, dict[str, float | None]) and fits(certain, dict[str, float]) and isinstance(found, dict)):
        raise ValueError(f"metrics is {result.metrics!r}")
    if not certain.get("train_nodes", 1) > 0 or ("train_nodes" in certain) != ("test_nodes" in certain):
        raise ValueError(f"metrics has no numbers of nodes: {result.metrics!r}")
    # Raises a `UnicodeEncodeError`, which is a `ValueError`, if a text in the file was not UTF-8.
    "".join((result.device, result.version, result.split_hash, result.error, result.finished)).encode()
    return result


def by_key(results: Iterable[RunResult]) -> dict[str, RunResult]:
    """Results by the key that their specification has in this version of the package.

    Runs from before an option was introduced are taken as runs with the default that it had then. If a run has several
    results, a good one is preferred to a failure.
    """
    found: dict[str, RunResult] = {}
    for result in results:
        spec = result.spec
        if spec.task != "features" and spec.method in METHODS:
            options = METHODS[spec.method].options()
            then = {name: value for name, value in LATER_OPTIONS.items() if name in options}
            spec = spec.with_defaults({**options, **then})
        if spec.key not in found or found[spec.key].status == "failed":
            found[spec.key] = result
    return found


def by_error(results: Iterable[RunResult]) -> dict[str, list[str]]:
    """The errors of failed runs, each with the names of the runs that failed with it."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.status == "failed":
            spec = result.spec
            which = "search" if spec.task == "search" else f"run {spec.run}"
            name = f"{spec.method} on {spec.dataset} ({spec.split}, {which})"
            found.setdefault(result.error, []).append(name)
    return found


class ResultStore(AbstractContextManager["ResultStore"]):
    """An SQLite file of results, for a ``with`` statement; it is created, with its folder, if it does not exist.

    Args:
        path: The file.
        read_only: Whether nothing will be written, so that a file in a place without write access will do.

    Raises:
        InputError: If the file is not a store, or can't be read or written.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        if not read_only:
            with writing(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            timeout = min(_PAUSE_SECONDS, _WAIT_SECONDS)
            self._connection = sqlite3.connect(self.path, timeout=timeout, isolation_level=None)
            self._connection.text_factory = lambda text: text.decode(errors="surrogateescape")  # `checked` refuses it
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        try:
            if read_only:
                self._patiently(self._check_version)
            else:
                self._write(self._create)
        except InputError:
            self._connection.close()
            raise

    def _check_version(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            raise self._refusal("it belongs to another program or another version")

    def _create(self) -> None:
        if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        self._check_version()
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS runs (key PRIMARY KEY, {', '.join(COLUMNS)})")
        self._connection.execute("CREATE TABLE IF NOT EXISTS begun (key PRIMARY KEY)")

    def _refusal(self, why: object) -> InputError:
        return InputError(
            f"{self.path} can't be used as a store of results ({why}): free the disk or end the program that uses it, "
            "or give another path"
        )

    def add(self, *results: RunResult) -> None:
        """Write results; they are on the disk when this returns."""
        columns, places = ", ".join(("key", *COLUMNS)), ", ".join("?" * (len(COLUMNS) + 1))
        rows = [_to_row(result) for result in results if not self.has(result.spec)]
        insert = f"INSERT OR REPLACE INTO runs ({columns}) VALUES ({places})"
        self._write(lambda: self._connection.executemany(insert, rows))

    def has(self, spec: RunSpec) -> bool:
        """Whether there is a good result of a run."""
        return any(result.status == "ok" for result in self._results("WHERE key = ?", spec.key))

    def finished(self) -> dict[str, tuple[Status, str]]:
        """The status of each run and when it was finished, by the key of its specification."""
        return {key: (status, when) for key, status, when in self._rows("SELECT key, status, finished FROM runs")}

    def results(self) -> list[RunResult]:
        """All results, in the order of their specifications."""
        return sorted(self._results(), key=in_order)

    @contextmanager
    def begun(self, spec: RunSpec) -> Iterator[None]:
        """Mark a run as begun while this block runs; the mark stays if the process is killed."""
        self._write(lambda: self._connection.execute("INSERT OR REPLACE INTO begun VALUES (?)", [spec.key]))
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # a mark that stays does no harm, and is not worth waiting for
                self._connection.execute("DELETE FROM begun WHERE key = ?", [spec.key])

    def unfinished(self) -> set[str]:
        """The keys of runs that were begun and are either still under way or were killed."""
        return {key for (key,) in self._rows("SELECT key FROM begun")}

    def _results(self, which: str = "", *values: str) -> Iterator[RunResult]:
        rows = self._rows(f"SELECT key, {', '.join(COLUMNS)} FROM runs {which}", *values)
        return filter(None, (self._from_row(*row) for row in rows))

    def _from_row(self, key: Any, *row: Any) -> RunResult | None:
        plain = dict(zip(COLUMNS, row, strict=True))
        try:
            plain |= {name: read_json(plain[name]) for name in _JSON_COLUMNS}
            return checked(RunResult(**{**plain, "spec": RunSpec.from_dict(plain["spec"])}))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            warning = f"{self.path}: the run with the key {key!r} is damaged ({error}) and counts as not made"
            warnings.warn(one_line(warning), StoreWarning, stacklevel=2)
            return None

    def _rows(self, query: str, *values: str) -> list[Any]:
        return self._patiently(lambda: self._connection.execute(query, values).fetchall())

    def _write(self, change: Callable[[], object]) -> None:
        """Make a change as a whole. The file is locked first: a reader can't wait for its turn to write."""

        def transaction() -> None:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                change()
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    with suppress(sqlite3.Error):  # it would hide the cause
                        self._connection.execute("ROLLBACK")

        self._patiently(transaction)

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask again while the file is locked or the disk is full, and say so."""
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return ask()
            except (sqlite3.Error, UnicodeDecodeError) as error:  # noqa: PERF203 - this loop has time
                is_full = "full" in str(error)
                if time.monotonic() >= end or not (is_full or "locked" in str(error)):
                    raise self._refusal(error) from error
                warning = f"{self.path} can't be used ({error}): waiting for at most {_WAIT_SECONDS / 60:.0f} minutes"
                warnings.warn(warning, StoreWarning, stacklevel=2)
                time.sleep(_PAUSE_SECONDS if is_full else 0)  # SQLite itself waits for a lock

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def in_order(result: RunResult) -> tuple[Any, ...]:
    """Sorts results by their specifications."""
    spec = result.spec
    return spec.task, spec.dataset, spec.split, spec.method, spec.group.key, spec.run


def _to_row(result: RunResult) -> tuple[Any, ...]:
    plain = asdict(result) | {"spec": result.spec.to_dict()}
    return result.spec.key, *(compact_json(plain[name]) if name in _JSON_COLUMNS else plain[name] for name in COLUMNS)


def read_json(text: str | bytes) -> Any:
    """Plain values from JSON, or a ``ValueError`` if they could not be written as JSON in UTF-8."""
    value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair has no bytes
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


def compact_json(value: Any) -> str:
    """A plain value in JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
