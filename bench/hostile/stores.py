"""Damaged stores of results and damaged exports: ``gcnsl report`` shows what is in them, or refuses in one line."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.hostile.cases import Case
from bench.hostile.damage import ODD_VALUES, damaged_bytes, damaged_document

from gcnsl.experiments.collect import collect
from gcnsl.experiments.paper_report import render
from gcnsl.experiments.result_exports import import_lines, read_results
from gcnsl.experiments.result_store import ResultStore

ENDLESS = True
EXPORT = Path(__file__).parents[2] / "results" / "two-cores.jsonl"
LINES = 2
COLUMNS = ("key", "spec", "status", "metrics", "seconds", "device", "version", "split_hash", "error", "history")


def cases(rng: random.Random) -> Iterator[Case]:
    """Damaged copies of some committed results, without end."""
    lines = EXPORT.read_text(encoding="utf-8").splitlines()[:LINES]
    store = _store(lines)
    while True:
        seed = rng.randrange(2**31)
        how = rng.choice(["bytes of a store", "rows of a store", "bytes of an export", "values of an export"])
        yield Case(f"stores, {how}", f"seed {seed}", partial(report, lines, store, how, seed), fault)


def report(lines: list[str], store: bytes, how: str, seed: int) -> str:
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
            path.write_bytes(damaged_bytes("\n".join(lines).encode(), rng))
        else:
            spoilt = [json.dumps(damaged_document(json.loads(line), rng)) for line in lines]
            path.write_text("\n".join(spoilt), encoding="utf-8")
        return render(collect(read_results(path)))


def fault(page: str) -> str:
    """What is wrong with a page."""
    return "a value begins a script" if "<!--<script" in page else ""


def _spoil_rows(path: Path, rng: random.Random) -> None:
    column, value = rng.choice(COLUMNS), rng.choice([*ODD_VALUES, "{", '{"test": "x"}', "NaN"])
    text: Any = json.dumps(value) if isinstance(value, list | dict) or rng.random() < 0.5 else value
    with sqlite3.connect(path) as connection:
        if rng.random() < 0.1:
            connection.execute(rng.choice(["DROP TABLE runs", "DELETE FROM runs", "PRAGMA user_version = 7"]))
        else:
            some = "WHERE rowid = 1" if rng.random() < 0.5 or column == "key" else ""
            connection.execute(f"UPDATE runs SET {column} = ? {some}", [str(text) if isinstance(text, int) else text])
    connection.close()


def _store(lines: list[str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        export, path = Path(folder, "results.jsonl"), Path(folder, "results.db")
        export.write_text("\n".join(lines), encoding="utf-8")
        with ResultStore(path) as store:
            store.add(*import_lines(export))
        return path.read_bytes()
