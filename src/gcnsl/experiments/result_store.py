"""Finished runs in one SQLite file that several processes may write to, and as JSON lines for other machines.

Every result is written as soon as its run is finished, so a run that is killed leaves nothing behind. A good result is
never replaced; a failure is replaced by any later result of the same run.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from gcnsl.errors import InputError
from gcnsl.experiments.spec import RunSpec
from gcnsl.files import atomic_write
from gcnsl.methods import METHODS

Status = Literal["ok", "failed"]

_VERSION = 1
_WAIT_SECONDS = 60.0
"""How long a process waits for another one that is writing."""
_JSON_COLUMNS = ("spec", "metrics", "history")
_SHARED = ("device", "version")
"""What a line of an export has only once for all of its runs, besides their specification."""


@dataclass(frozen=True)
class RunResult:
    """The result of a run; times are in UTC (ISO 8601), and errors in one line.

    Among the metrics are the accuracies ``train``, ``val`` and ``test``, ``train_nodes``, ``test_nodes``, ``epochs``,
    ``best_epoch`` and ``homophily``; those of a search are ``validation``, ``trials`` and the ``options`` that it has
    found. The seconds are without preparing the graph, the hash is the beginning of the
    SHA-256 of the run's three masks, and the history has curves if the specification asks for them.
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


_COLUMNS = tuple(field.name for field in fields(RunResult))


def by_key(results: Iterable[RunResult]) -> dict[str, RunResult]:
    """Results by the key that their specification has in this version of the package.

    Runs from before an option was introduced are taken as runs with the option's default. If a run has several
    results, a good one is preferred to a failure.
    """
    found: dict[str, RunResult] = {}
    for result in results:
        spec = result.spec
        if spec.task != "features" and spec.method in METHODS:
            spec = spec.with_defaults(METHODS[spec.method].options())
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

    Raises:
        InputError: If the file is not a store, or can't be read or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        try:
            with self._writing():
                (version,) = self._connection.execute("PRAGMA user_version").fetchone()
                if not self._connection.execute("SELECT name FROM sqlite_master").fetchall():
                    self._connection.execute(f"PRAGMA user_version = {_VERSION}")
                elif version != _VERSION:
                    raise self._refusal("it belongs to another program or another version")
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS runs (key PRIMARY KEY, {', '.join(_COLUMNS)})")
        except InputError:
            self._connection.close()
            raise

    def _refusal(self, why: object) -> InputError:
        return InputError(
            f"{self.path} can't be used as a store of results ({why}): free the disk or end the program that uses it, "
            "or give another path"
        )

    def add(self, *results: RunResult) -> None:
        """Write results; they are on the disk when this returns."""
        columns = ", ".join(("key", *_COLUMNS))
        places = ", ".join("?" * (len(_COLUMNS) + 1))
        update = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)
        with self._writing():
            self._connection.executemany(
                f"INSERT INTO runs ({columns}) VALUES ({places}) "
                f"ON CONFLICT (key) DO UPDATE SET {update} WHERE runs.status = 'failed'",
                [_to_row(result) for result in results],
            )

    def has(self, spec: RunSpec) -> bool:
        """Whether there is a good result of a run."""
        return bool(self._rows("SELECT 1 FROM runs WHERE key = ? AND status = 'ok'", spec.key))

    def finished(self) -> dict[str, tuple[Status, str]]:
        """The status of each run and when it was finished, by the key of its specification."""
        return {key: (status, when) for key, status, when in self._rows("SELECT key, status, finished FROM runs")}

    def results(self) -> list[RunResult]:
        """All results, in the order of their specifications."""
        return sorted(map(self._from_row, self._rows(f"SELECT {', '.join(_COLUMNS)} FROM runs")), key=_order)

    def _rows(self, query: str, *values: str) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._refusal(error) from error

    def _from_row(self, row: Sequence[Any]) -> RunResult:
        plain = dict(zip(_COLUMNS, row, strict=True))
        try:
            plain |= {name: json.loads(plain[name]) for name in _JSON_COLUMNS}
            return RunResult(**{**plain, "spec": RunSpec.from_dict(plain["spec"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._refusal(f"a run in it is damaged, {error!r}") from error

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Lock the file before anything is read: a reader that wants to write later can't wait for its turn."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def read_results(path: str | os.PathLike[str]) -> list[RunResult]:
    """All results of a store or of an export (``.jsonl``)."""
    if not Path(path).is_file():
        raise InputError(f"store({str(path)!r}): there is no such file; `gcnsl reproduce` makes one")
    if Path(path).suffix == ".jsonl":
        return list(import_lines(path))
    with ResultStore(path) as store:
        return store.results()


def export_lines(results: Iterable[RunResult], path: str | os.PathLike[str]) -> None:
    """Write results as JSON lines, in order, one line for all runs that differ in their number only.

    What the runs of a line have in common is written once; ``runs`` holds the rest.
    """

    def line(result: RunResult) -> tuple[str, ...]:
        return result.spec.group.key, result.device, result.version

    lines = []
    for _, same in groupby(sorted(results, key=line), key=line):
        members = sorted(same, key=_order)
        common = members[0].spec.group.to_dict() | {name: getattr(members[0], name) for name in _SHARED}
        del common["run"]
        runs = []
        for member in members:
            own = {name: getattr(member, name) for name in _COLUMNS if name not in ("spec", *_SHARED)}
            runs.append({"run": member.spec.run} | {name: value for name, value in own.items() if value or value == 0})
        lines.append((_order(members[0]), _json(common | {"runs": runs})))
    atomic_write(path, "".join(f"{line}\n" for _, line in sorted(lines)))


def import_lines(path: str | os.PathLike[str]) -> Iterator[RunResult]:
    """Read the results that :func:`export_lines` wrote."""
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        yield from _read_line(line, f"{path}, line {number}")


def _read_line(line: str, where: str) -> Iterator[RunResult]:
    try:
        common = json.loads(line)
        shared = {name: common.pop(name) for name in _SHARED}
        for run in common.pop("runs"):
            yield RunResult(spec=RunSpec.from_dict({**common, "run": run.pop("run")}), **shared, **run)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where} holds no runs ({error!r}): the file must be an export of results") from error


def _order(result: RunResult) -> tuple[Any, ...]:
    spec = result.spec
    return spec.task, spec.dataset, spec.split, spec.method, spec.group.key, spec.run


def _to_row(result: RunResult) -> tuple[Any, ...]:
    plain = asdict(result) | {"spec": result.spec.to_dict()}
    return result.spec.key, *(_json(plain[name]) if name in _JSON_COLUMNS else plain[name] for name in _COLUMNS)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
