"""Damaged stores of results and damaged exports: ``gcnsl report`` shows what is in them, or refuses in one line."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.hostile.cases import Case
from bench.hostile.damage import ODD_VALUES, damaged_bytes, damaged_document

from gcnsl.cli import app
from gcnsl.experiments.plan import Scope, plan
from gcnsl.experiments.result_exports import export_lines, import_lines
from gcnsl.experiments.result_store import COLUMNS, ResultStore, RunResult

ENDLESS = True
EXPORT = Path(__file__).parents[2] / "results" / "results.jsonl"
METHODS, OF_EACH = ("gcn-sl-cc", "gcn", "esc"), 3
"""Whose committed results are damaged, and how many of each."""
REPORT = "report --store {0} -o {1}/page.html --markdown {1}/page.md --latex {1}/page.tex --export {1}/export.jsonl"


def cases(rng: random.Random) -> Iterator[Case]:
    """Damaged copies of some results, without end."""
    store, export = _files()
    while True:
        seed = rng.randrange(2**31)
        how = rng.choice(["bytes of a store", "rows of a store", "bytes of an export", "values of an export"])
        yield Case(f"stores, {how}", f"seed {seed}", partial(report, store, export, how, seed), fault)


def report(store: bytes, export: bytes, how: str, seed: int) -> str:
    """The report of damaged results."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.jsonl" if how.endswith("export") else "results.db")
        if how == "bytes of a store":
            path.write_bytes(damaged_bytes(store, rng))
        elif how == "rows of a store":
            path.write_bytes(store)
            _spoil_rows(path, rng)
        elif how == "bytes of an export":
            path.write_bytes(damaged_bytes(export, rng))
        else:
            lines = export.decode().splitlines()
            place = rng.randrange(len(lines))
            lines[place] = json.dumps(damaged_document(json.loads(lines[place]), rng))
            path.write_text("\n".join(lines), encoding="utf-8")
        app(REPORT.format(path, folder).split(), standalone_mode=False)
        return Path(folder, "page.html").read_text(encoding="utf-8")


def fault(page: str) -> str:
    """What is wrong with a page."""
    return "a value begins a script" if "<!--<script" in page else ""


def _spoil_rows(path: Path, rng: random.Random) -> None:
    """Another value in a column of a row or of all rows, or within the JSON that it holds; or no table."""
    with closing(sqlite3.connect(path)) as connection, connection:
        if rng.random() < 0.1:
            connection.execute(rng.choice(["DROP TABLE runs", "DELETE FROM runs", "PRAGMA user_version = 7"]))
            return
        column = rng.choice([*COLUMNS, *["spec", "metrics"] * 3])
        rows = connection.execute(f"SELECT rowid, {column} FROM runs").fetchall()
        for row, old in rows if rng.random() < 0.3 else [rng.choice(rows)]:
            connection.execute(f"UPDATE runs SET {column} = ? WHERE rowid = ?", [_spoilt(old, rng), row])


def _spoilt(old: Any, rng: random.Random) -> Any:
    if isinstance(old, str) and old.startswith("{") and old != "{}" and rng.random() < 0.8:
        return json.dumps(damaged_document(json.loads(old), rng))
    value = rng.choice([*ODD_VALUES, "{", '{"test": "x"}', "NaN", b"\xff\0"])
    return json.dumps(value) if isinstance(value, list | dict) else str(value) if isinstance(value, int) else value


def _files() -> tuple[bytes, bytes]:
    """A store and an export of some committed results, of a search and of a run that failed."""
    committed = [*import_lines(EXPORT)]
    chosen = [run for name in METHODS for run in [run for run in committed if run.spec.method == name][:OF_EACH]]
    searches = plan("beyond", Scope(datasets=["texas"], methods=["mlp"], runs=1)).specs[:1]
    found: dict[str, Any] = {"validation": 0.8, "trials": 3, "options": {"lr": 0.01}}
    chosen += [RunResult(spec, "ok", found, 3.0, "CPU", "1.0") for spec in searches]
    failed = replace(chosen[0].spec, run=9)
    chosen.append(RunResult(failed, "failed", error="TrainingDiverged: the loss is NaN"))
    with tempfile.TemporaryDirectory() as folder:
        path, export = Path(folder, "results.db"), Path(folder, "results.jsonl")
        with ResultStore(path) as store:
            store.add(*chosen)
        export_lines(chosen, export)
        return path.read_bytes(), export.read_bytes()
