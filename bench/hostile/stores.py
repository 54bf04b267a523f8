"""Damaged files of results: ``gcnsl report`` shows what is in them, or refuses in one line."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.hostile.cases import Case
from bench.hostile.damage import damaged_bytes, damaged_document

from gcnsl.cli import app
from gcnsl.experiments.plan import Scope, plan, specs_of
from gcnsl.experiments.records import RunResult, read_results
from gcnsl.runs.results import to_json

ENDLESS = True
COMMITTED = Path(__file__).parents[2] / "results" / "results.jsonl"
METHODS, OF_EACH = ("gcn-sl-cc", "gcn", "esc"), 3
"""Whose committed results are damaged, and how many of each."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Damaged copies of some results, without end."""
    lines = [*_lines()]
    while True:
        seed, how = rng.randrange(2**31), rng.choice(["bytes", "values"])
        yield Case(f"stores, {how}", f"seed {seed}", partial(report, lines, how, seed), fault)


def report(lines: list[str], how: str, seed: int) -> str:
    """The report of damaged results."""
    rng, changed = random.Random(seed), list(lines)
    place = rng.randrange(len(lines))
    changed[place] = json.dumps(damaged_document(json.loads(lines[place]), rng))
    content = "".join(f"{line}\n" for line in (changed if how == "values" else lines)).encode()
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder, "results.jsonl"), Path(folder, "page.html")
        path.write_bytes(damaged_bytes(content, rng) if how == "bytes" else content)
        arguments = f"report --store {path} -o {page} --markdown {folder}/page.md"
        app(arguments.split(), standalone_mode=False)
        return page.read_text(encoding="utf-8")


def fault(page: str) -> str:
    """What is wrong with a page."""
    return "a value begins a script" if "<!--<script" in page else ""


def _lines() -> Iterator[str]:
    """Some committed lines, each of several runs, and lines of single runs, of a search and of a run that failed."""
    committed = read_results(COMMITTED)
    chosen = [run for name in METHODS for run in [run for run in committed if run.spec.method == name][:OF_EACH]]
    searches = specs_of(plan("beyond", Scope(datasets=["texas"], methods=["mlp"], runs=1)))[:1]
    found: dict[str, Any] = {"validation": 0.8, "trials": 3, "options": {"lr": 0.01}}
    chosen += [RunResult(spec, "ok", found, 3.0, "CPU", "1.0") for spec in searches]
    failed = replace(chosen[0].spec, run=9)
    chosen.append(RunResult(failed, "failed", error="TrainingDiverged: the loss is NaN"))
    yield from (to_json(each.to_record()) for each in chosen)
    yield from COMMITTED.read_text(encoding="utf-8").splitlines()[:OF_EACH]
