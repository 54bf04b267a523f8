"""Results as JSON lines, for other machines and for version control."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from gcnsl.errors import InputError
from gcnsl.experiments.result_store import COLUMNS, ResultStore, RunResult, checked, compact_json, in_order, read_json
from gcnsl.experiments.spec import RunSpec
from gcnsl.files import atomic_write

_SHARED = ("device", "version")
"""What a line has only once for all of its runs, besides their specification."""


def read_results(path: str | os.PathLike[str]) -> list[RunResult]:
    """All results of a store or of an export (``.jsonl``)."""
    if not Path(path).is_file():
        raise InputError(f"store({str(path)!r}): there is no such file; `gcnsl reproduce` makes one")
    if Path(path).suffix == ".jsonl":
        return list(import_lines(path))
    with ResultStore(path, read_only=True) as store:
        return store.results()


def export_lines(results: Iterable[RunResult], path: str | os.PathLike[str]) -> None:
    """Write results as JSON lines, in order, one line for all runs that differ in their number only.

    What the runs of a line have in common is written once; ``runs`` holds the rest.
    """

    def line(result: RunResult) -> tuple[str, ...]:
        return result.spec.group.key, result.device, result.version

    lines = []
    for _, same in groupby(sorted(results, key=line), key=line):
        members = sorted(same, key=in_order)
        common = members[0].spec.group.to_dict() | {name: getattr(members[0], name) for name in _SHARED}
        del common["run"]
        runs = []
        for member in members:
            own = {name: getattr(member, name) for name in COLUMNS if name not in ("spec", *_SHARED)}
            runs.append({"run": member.spec.run} | {name: value for name, value in own.items() if value or value == 0})
        lines.append((in_order(members[0]), compact_json(common | {"runs": runs})))
    atomic_write(path, "".join(f"{line}\n" for _, line in sorted(lines)))


def import_lines(path: str | os.PathLike[str]) -> Iterator[RunResult]:
    """Read the results that :func:`export_lines` wrote.

    Raises:
        InputError: If the file can't be read, or a line is damaged; it names the line.
    """
    try:
        lines = Path(path).read_bytes().decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read ({error}): the file must be an export of results") from error
    for number, line in enumerate(filter(None, lines), start=1):
        yield from _read_line(line, f"{path}, line {number}")


def _read_line(line: str, where: str) -> Iterator[RunResult]:
    try:
        common = read_json(line)
        shared = {name: common.pop(name) for name in _SHARED}
        for run in common.pop("runs"):
            yield checked(RunResult(spec=RunSpec.from_dict({**common, "run": run.pop("run")}), **shared, **run))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{where} holds no runs ({error!r}): the file must be an export of results") from error
