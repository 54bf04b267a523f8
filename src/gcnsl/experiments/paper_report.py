"""One page with all results: it needs no network, suits light and dark mode, and shows the runs behind every number."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.experiments import paper
from gcnsl.experiments.claims import METHOD, Claim, worst_first
from gcnsl.experiments.collect import Findings
from gcnsl.experiments.display_names import column_label, split_label
from gcnsl.experiments.plan import MERGES
from gcnsl.experiments.result_figures import CAPTIONS, draw
from gcnsl.experiments.result_store import RunResult, by_error
from gcnsl.experiments.result_tables import Table, TableCell, number_text

_RUN_COLUMNS = [
    "run",
    "seed",
    "val. accuracy",
    "best epoch",
    "epochs",
    "seconds",
    "split",
    "device",
    "gcnsl",
    "finished",
]
_METRICS = {"test": "test accuracy", "degree": "neighbours"} | dict.fromkeys(
    ("homophily_original", "homophily_initial", "homophily"), "h"
)


def render(findings: Findings) -> str:
    """The page as HTML."""
    files = PackageLoader("gcnsl.experiments", "page")
    pages = Environment(loader=files, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters["subscripts"] = _subscripts
    pages.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    css, js = (Markup(files.get_source(pages, name)[0]) for name in ("report.css", "report.js"))
    runs = _Runs()
    names = dict.fromkeys(table.experiment.name for table in findings.tables)
    sections = [_section([t for t in findings.tables if t.experiment.name == name], runs) for name in names]
    claims, failures = worst_first(findings.claims), by_error(findings.results)
    return pages.get_template("report.html.j2").render(
        css=css,
        js=js,
        findings=findings,
        links=["summary", *(["claims"] if claims else []), *names, *(["failures"] if failures else []), "where"],
        cards=list(_cards(findings, claims)),
        method=METHOD,
        claims=claims,
        sections=sections,
        failures=failures,
        places=list(_places(findings.results)),
        data=runs.to_dict(),
    )


def _subscripts(text: str) -> Markup:
    """The text with its subscripts set low."""
    return Markup(re.sub(r"_(cc|av)\b", r"<sub>\1</sub>", str(escape(text))))


class _Runs:
    """The runs as the page's script reads them: cells refer to runs and hyper-parameters, stored once, by number."""

    def __init__(self) -> None:
        self.cells: list[dict[str, Any]] = []
        self._groups: dict[str, tuple[int, dict[str, Any]]] = {}
        self._runs: dict[str, tuple[int, list[Any]]] = {}

    def add(self, table: Table, cell: TableCell) -> int:
        """Store a cell's runs and return the cell's number."""
        planned = cell.planned
        spec = planned.runs[0]
        group, _ = self._groups.setdefault(spec.group.key, (len(self._groups), dict(spec.options)))
        where = ", ".join(filter(None, (column_label(planned.column), split_label(planned.split))))
        self.cells.append(
            {
                "title": f"{table.row_label(planned.row)} on {where}",
                "text": _sentence(cell),
                "metric": _METRICS.get(planned.metric, planned.metric),
                "group": group,
                "runs": [
                    [number_text(value, None, cell.unit), self._number(result)]
                    for result, value in zip(cell.good, cell.values.values(), strict=True)
                ],
                "failed": [[result.spec.run, result.error] for result in cell.failed],
            }
        )
        return len(self.cells) - 1

    def _number(self, result: RunResult) -> int:
        metrics, spec = result.metrics, result.spec
        line = [
            spec.run,
            spec.train_seed,
            number_text(100 * metrics["val"], None, "%") if "val" in metrics else "–",
            metrics.get("best_epoch", "–"),
            metrics.get("epochs", "–"),
            number_text(result.seconds, None, "s"),
            result.split_hash[:8] or "–",
            result.device,
            result.version,
            result.finished[:10],
        ]
        return self._runs.setdefault(spec.key, (len(self._runs), line))[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the page's script."""
        return {
            "columns": _RUN_COLUMNS,
            "cells": self.cells,
            "groups": [options for _, options in self._groups.values()],
            "runs": [line for _, line in self._runs.values()],
        }


def _section(tables: Sequence[Table], runs: _Runs) -> dict[str, Any]:
    """An experiment: a picture and a table for each of its variants, and notes on its graphs."""
    experiment = tables[0].experiment
    graphs = [name for name in dict.fromkeys(c for table in tables for c in table.columns) if name in BENCHMARKS]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "caption": CAPTIONS[experiment.name],
        "tables": [_table(table, runs) for table in tables],
        "notes": [(column_label(name), "; ".join(BENCHMARKS[name].notes)) for name in graphs if BENCHMARKS[name].notes],
    }


def _table(table: Table, runs: _Runs) -> dict[str, Any]:
    picture = draw(table)
    return {
        "title": table.title,
        "heading": table.variant[:1].upper() + table.variant[1:],
        "picture": Markup(picture) if picture else None,
        "columns": [column_label(column) for column in table.columns],
        "lines": [
            (table.row_label(row), [_shown_cell(table, row, column, runs) for column in table.columns])
            for row in table.rows
        ],
    }


def _shown_cell(table: Table, row: str, column: str, runs: _Runs) -> dict[str, Any] | None:
    """A cell as the page shows it, empty strings not at all; ``None`` without results."""
    cell = table.cells.get((row, column))
    if cell is None or not (cell.good or cell.failed):
        return None
    printed = cell.planned.paper
    failed = f", {len(cell.failed)} failed" if cell.failed else ""
    return {
        "number": runs.add(table, cell),
        "value": "" if cell.mean is None else f"{cell.mean:.6g}",
        "best": row in table.best(column),
        "ours": number_text(cell.mean, cell.std, cell.unit),
        "paper": number_text(*printed, cell.unit) if printed else "",
        "delta": "" if cell.difference is None else _difference(cell),
        "closeness": "" if cell.difference is None else _closeness(cell, cell.difference),
        "shortfall": "" if cell.is_complete else f"n = {len(cell.good)}{failed}",
    }


def _closeness(cell: TableCell, difference: float) -> str:
    """The colour of the difference to the paper: ``"above"``, ``"within"``, ``"below"`` or ``"open"``."""
    gain = -difference if cell.unit == "s" else difference
    if gain >= 0:
        return "above"
    if cell.reached is None and cell.unit != "s":
        return "open"
    return "within" if cell.reached else "below"


def _difference(cell: TableCell) -> str:
    """The difference to the paper with its sign; for times, how many times as fast ours is."""
    printed = cell.planned.paper
    if cell.unit == "s" and cell.mean and printed:
        return f"{number_text(float(f'{printed.mean / cell.mean:.2g}'), None, 's')}×"
    text = f"{cell.difference:+.{1 if cell.unit == '%' else 2}f}".replace("-", "−")
    return text if text.strip("+−0.") else f"±{text[1:]}"


def _sentence(cell: TableCell) -> str:
    """A cell's number in words."""
    ours = f"{number_text(cell.mean, cell.std, cell.unit)} over {len(cell.good)} of {len(cell.planned.runs)} runs"
    if cell.planned.paper is None:
        return f"{ours}. The paper prints no number here."
    delta = ""
    if cell.difference is not None:
        times = f"ours is {_difference(cell)} as fast"
        delta = f", {times if cell.unit == 's' else f'a difference of {_difference(cell)}'}"
    return f"{ours}; the paper prints {number_text(*cell.planned.paper, cell.unit)}{delta}."


def _cards(findings: Findings, claims: Sequence[Sequence[Claim]]) -> Iterator[tuple[str, str]]:
    """Numbers for the summary, each with a few words."""
    for table in findings.tables:
        if table.experiment.name == "accuracy" and not table.experiment.paper_hparams:
            cells = [cell for (row, _), cell in table.cells.items() if row in MERGES]
            known = [cell.reached for cell in cells if cell.reached is not None]
            missing = len(MERGES) * len(paper.DATASETS) - len(known)
            if known:
                text = f"GCN-SL accuracies reach the paper's, {split_label(table.split)}"
                yield f"{sum(known)} of {len(known)}", text + (f"; {missing} not run" if missing else "")
    verdicts = [{claim.verdict for claim in variants} for variants in claims if variants[0].of_paper]
    if verdicts:
        for all_of, text in (
            ({"holds"}, "claims of the paper hold"),
            ({"not shown"}, "claims can't be told from noise"),
            ({"does not hold", "mostly does not hold"}, "claims do not hold, or mostly not"),
        ):
            yield f"{sum(found <= all_of for found in verdicts)} of {len(verdicts)}", text
    statuses = Counter(result.status for result in findings.results)
    yield f"{statuses['ok']:,}", f"runs, {statuses['failed']:,} more failed"
    yield f"{sum(result.seconds for result in findings.results) / 3600:.1f} h", "of computing"


def _places(results: Iterable[RunResult]) -> Iterator[tuple[str, ...]]:
    """A line for each device and version: how many runs, how many hours, from when to when."""
    places: dict[tuple[str, str], list[RunResult]] = defaultdict(list)
    for result in results:
        places[result.device, result.version].append(result)
    for (device, version), same in sorted(places.items()):
        days = sorted(result.finished[:10] for result in same if result.finished) or ["–"]
        hours = sum(result.seconds for result in same) / 3600
        yield device, version, f"{len(same):,}", f"{hours:.2f}", days[0], days[-1]
