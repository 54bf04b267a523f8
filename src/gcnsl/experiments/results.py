"""Finished runs in one SQLite file: each is written at once, and several processes may write.

A run that is killed leaves nothing behind. A good result is never replaced; a failure is, by whatever comes later.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from gcnsl.errors import InputError
from gcnsl.experiments.spec import RunSpec
from gcnsl.files import atomic_write

Status = Literal["ok", "failed"]

_VERSION = 1
_WAIT_SECONDS = 60.0
"""How long a process waits for another that is writing."""
_JSON_COLUMNS = ("spec", "metrics", "history")
_SHARED = ("device", "version")
"""Besides the specification, what an export says once for several runs."""


@dataclass(frozen=True)
class RunResult:
    """What came of a run.

    Attributes:
        spec: The run.
        status: ``"ok"`` or ``"failed"``.
        metrics: Numbers by name: ``train``, ``val`` and ``test`` accuracy, ``epochs``, ``best_epoch``, homophily, ...
        seconds: Time the run took, preparing not counted.
        device: Where: ``"CPU (x86_64, 2 cores)"``, or a GPU's name.
        version: Of this package.
        split_hash: SHA-256 of the run's three masks, shortened; empty where no node is classified.
        error: What went wrong, in one line; empty where nothing did.
        history: Curves by name, where they were asked for.
        finished: When, in UTC (ISO 8601).
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"spec": self.spec.to_dict()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> RunResult:
        """What :meth:`to_dict` gave."""
        return cls(**{**plain, "spec": RunSpec.from_dict(plain["spec"])})


_COLUMNS = tuple(field.name for field in fields(RunResult))
_FINISHED = "SELECT key, status, finished FROM runs"


class ResultStore:
    """The file that holds the results.

    Args:
        path: An SQLite file; made, with its folder, if it is not there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        except sqlite3.DatabaseError as error:
            raise self._refusal(error) from error
        try:
            with self._writing():
                self._check_version()
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS runs (key PRIMARY KEY, {', '.join(_COLUMNS)})")
        except (sqlite3.DatabaseError, InputError) as error:
            self.close()
            raise self._refusal(error) from error

    def _refusal(self, why: object) -> InputError:
        return InputError(f"{self.path} can't be used as a store of results ({why}): give another path")

    def _check_version(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        tables = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        if not tables:
            self._connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise InputError("it is another program's or another version's")

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
        query = "SELECT 1 FROM runs WHERE key = ? AND status = 'ok'"
        return self._connection.execute(query, [spec.key]).fetchone() is not None

    def finished(self) -> dict[str, tuple[Status, str]]:
        """Whether each run went well, and when it was finished, by the key of its specification."""
        return {key: (status, when) for key, status, when in self._connection.execute(_FINISHED)}

    def results(self) -> list[RunResult]:
        """All results, in the order of their specifications."""
        rows = self._connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM runs")
        return sorted(map(_from_row, rows), key=_order)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Claim the file first, then read and write: a claim waits its turn, an upgraded reader can't."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def read_results(path: str | os.PathLike[str]) -> list[RunResult]:
    """All results of a store, or of an export (``.jsonl``)."""
    if not Path(path).is_file():
        raise InputError(f"store({str(path)!r}): there is no such file; `gcnsl reproduce` makes one")
    if Path(path).suffix == ".jsonl":
        return list(import_lines(path))
    with ResultStore(path) as store:
        return store.results()


def export_lines(results: Iterable[RunResult], path: str | os.PathLike[str]) -> None:
    """Write results as JSON lines, one for all runs that differ in nothing but their number: small, and in order.

    What is the same for the runs of a line is said once; ``runs`` holds what is not.
    """
    lines = []
    ordered = sorted(results, key=lambda result: (result.spec.group.key, result.device, result.version))
    for _, same in groupby(ordered, key=lambda result: (result.spec.group.key, result.device, result.version)):
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
    """The results that :func:`export_lines` wrote."""
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        yield from _read_line(line, f"{path}, line {number}")


def _read_line(line: str, where: str) -> list[RunResult]:
    try:
        common = json.loads(line)
        shared = {name: common.pop(name) for name in _SHARED}
        runs = common.pop("runs")
        specs = [RunSpec.from_dict({**common, "run": run.pop("run")}) for run in runs]
        return [RunResult(spec=spec, **shared, **run) for spec, run in zip(specs, runs, strict=True)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where} holds no runs ({error!r}): the file must be an export of results") from error


def _order(result: RunResult) -> tuple[Any, ...]:
    spec = result.spec
    return spec.task, spec.dataset, spec.split, spec.method, spec.group.key, spec.run


def _to_row(result: RunResult) -> tuple[Any, ...]:
    plain = result.to_dict()
    return result.spec.key, *(_json(plain[name]) if name in _JSON_COLUMNS else plain[name] for name in _COLUMNS)


def _from_row(row: tuple[Any, ...]) -> RunResult:
    values = zip(_COLUMNS, row, strict=True)
    return RunResult.from_dict({name: json.loads(value) if name in _JSON_COLUMNS else value for name, value in values})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
