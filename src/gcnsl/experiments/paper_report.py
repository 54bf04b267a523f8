"""One page with all results: it needs no network, suits light and dark, and shows the runs behind every number."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.experiments import paper
from gcnsl.experiments.claims import METHOD, Claim, worst_first
from gcnsl.experiments.collect import Findings
from gcnsl.experiments.figures import CAPTIONS, draw
from gcnsl.experiments.labels import column_label, split_label
from gcnsl.experiments.plan import MERGES
from gcnsl.experiments.results import RunResult
from gcnsl.experiments.tables import Table, TableCell, number_text

_RUN_COLUMNS = (
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
)


def render(findings: Findings) -> str:
    """The page as HTML."""
    page = resources.files("gcnsl.experiments") / "page"
    runs = _Runs()
    names = list(dict.fromkeys(table.experiment.name for table in findings.tables))
    sections = [_section(name, [t for t in findings.tables if t.experiment.name == name], runs) for name in names]
    failed = [result for result in findings.results if result.status == "failed"]
    return Template((page / "report.html").read_text(encoding="utf-8")).substitute(
        css=(page / "report.css").read_text(encoding="utf-8"),
        js=(page / "report.js").read_text(encoding="utf-8"),
        n_runs=f"{len(findings.results):,}",
        nav=_nav(findings, names, bool(failed)),
        cards=_cards(findings),
        legend=_LEGEND,
        claims=_claims(findings.claims),
        sections="\n".join(sections),
        failures=_failures(failed),
        where=_where(findings),
        data=json.dumps(runs.to_dict(), separators=(",", ":")).replace("</", "<\\/"),
    )


_LEGEND = """<ul class="legend" aria-label="Colours">
<li><span class="delta above">+0.3</span> the paper's mean or better</li>
<li><span class="delta within">−0.5</span> short of it by no more than the paper's standard deviation</li>
<li><span class="delta below">−2.1</span> further short of it</li>
<li><span class="delta open">−0.4</span> short of it, and the paper gives no deviation</li>
<li><b>bold</b>: best of its column</li>
</ul>
<p class="note">± is the standard deviation of the runs (n − 1).</p>"""


class _Runs:
    """What the page knows of runs, each said once: cells name groups (hyper-parameters) and runs by number."""

    def __init__(self) -> None:
        self.cells: list[dict[str, Any]] = []
        self._groups: dict[str, tuple[int, dict[str, Any]]] = {}
        self._runs: dict[str, tuple[int, list[Any]]] = {}

    def add(self, table: Table, cell: TableCell) -> int:
        """Note a cell's runs and return its number."""
        spec = cell.cell.runs[0]
        group, _ = self._groups.setdefault(spec.group.key, (len(self._groups), dict(spec.options)))
        where = ", ".join(filter(None, (column_label(cell.cell.column), split_label(cell.cell.split))))
        self.cells.append(
            {
                "title": f"{table.row_label(cell.cell.row)} on {where}",
                "text": _cell_sentence(cell),
                "metric": _METRICS.get(cell.cell.metric, cell.cell.metric),
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
        """For the page's script."""
        return {
            "columns": _RUN_COLUMNS,
            "cells": self.cells,
            "groups": [options for _, options in self._groups.values()],
            "runs": [line for _, line in self._runs.values()],
        }


_METRICS = {
    "test": "test accuracy",
    "homophily_original": "h",
    "homophily_initial": "h",
    "homophily": "h",
    "degree": "neighbours",
}


def _cell_sentence(cell: TableCell) -> str:
    ours = f"{number_text(cell.mean, cell.std, cell.unit)} over {len(cell.good)} of {len(cell.cell.runs)} runs"
    if cell.cell.paper is None:
        return f"{ours}. The paper prints no number here."
    delta = (
        (f", ours is {_signed(cell)} as fast" if cell.unit == "s" else f", a difference of {_signed(cell)}")
        if cell.difference is not None
        else ""
    )
    return f"{ours}; the paper prints {number_text(*cell.cell.paper, cell.unit)}{delta}."


def _nav(findings: Findings, names: Sequence[str], any_failed: bool) -> str:
    ids = ["summary", *(["claims"] if findings.claims else []), *names, *(["failures"] if any_failed else []), "where"]
    return "<ul>" + "".join(f'<li><a href="#{name}">{name.capitalize()}</a></li>' for name in ids) + "</ul>"


def _cards(findings: Findings) -> str:
    cards = []
    for table in findings.tables:
        if table.experiment.name == "accuracy" and not table.experiment.paper_hparams:
            reached = [cell.reached for (row, _), cell in table.cells.items() if row in MERGES]
            known = [value for value in reached if value is not None]
            if known:
                missing = len(MERGES) * len(paper.DATASETS) - len(known)
                text = f"GCN-SL accuracies reach the paper's, {split_label(table.split)}"
                text += f"; {missing} not run" if missing else ""
                cards.append((f"{sum(known)} of {len(known)}", text))
    verdicts = [{claim.verdict for claim in same} for same in worst_first(findings.claims) if same[0].of_paper]
    if verdicts:
        for all_of, text in (
            ({"holds"}, "claims of the paper hold"),
            ({"not shown"}, "claims can't be told from noise"),
            ({"does not hold", "mostly does not hold"}, "claims do not hold, or mostly not"),
        ):
            cards.append((f"{sum(found <= all_of for found in verdicts)} of {len(verdicts)}", text))
    statuses = Counter(result.status for result in findings.results)
    hours = sum(result.seconds for result in findings.results) / 3600
    cards += [(f"{statuses['ok']:,}", f"runs, {statuses['failed']:,} more failed"), (f"{hours:.1f} h", "of computing")]
    return "\n".join(
        f'<div class="card"><strong>{value}</strong><span>{escape(text)}</span></div>' for value, text in cards
    )


def _claims(claims: Sequence[Claim]) -> str:
    if not claims:
        return ""
    items = [
        f'<li><strong>{_html(same[0].text)}</strong> <span class="muted">({escape(same[0].origin)})</span>'
        f"{''.join(map(_verdict, same))}</li>"
        for same in worst_first(claims)
    ]
    return (
        '<section id="claims" aria-labelledby="claims-title"><h2 id="claims-title">What the paper claims</h2>'
        f'<p>{METHOD}</p><ul class="claims">' + "\n".join(items) + "</ul></section>"
    )


def _verdict(claim: Claim) -> str:
    """What became of a claim in one variant, to be opened for the numbers."""
    signs = {True: "for", False: "against", None: "noise"}
    findings = "".join(f"<li><b>{signs[f.outcome]}</b>: {_html(f.text)}</li>" for f in claim.findings)
    return (
        f'<details><summary><span class="verdict {claim.verdict.replace(" ", "-")}">{claim.verdict}</span>'
        f"{escape(claim.summary)}</summary><ul>{findings}</ul></details>"
    )


def _section(name: str, tables: Sequence[Table], runs: _Runs) -> str:
    """An experiment: for each kind of split its picture and its table."""
    parts = [f'<section id="{name}" aria-labelledby="{name}-title">']
    parts.append(f'<h2 id="{name}-title">{_html(tables[0].experiment.title)}</h2>')
    for table in tables:
        picture, title = draw(table), escape(table.title)
        parts.append(f"<h3>{escape(table.variant[:1].upper() + table.variant[1:])}</h3>" if table.variant else "")
        if picture:
            scroll = f'<div class="picture" tabindex="0" role="region" aria-label="Figure: {title}">{picture}</div>'
            parts.append(f"<figure>{scroll}<figcaption>{_html(CAPTIONS[name])}</figcaption></figure>")
        parts.append(_table(table, runs))
    notes = {column: BENCHMARKS[column].notes for table in tables for column in table.columns if column in BENCHMARKS}
    said = [f"<li>{column_label(column)}: {escape('; '.join(text))}</li>" for column, text in notes.items() if text]
    if said:
        parts.append(f"<details><summary>What to know about these graphs</summary><ul>{''.join(said)}</ul></details>")
    return "\n".join([*parts, "</section>"])


def _table(table: Table, runs: _Runs) -> str:
    names = ["", *map(column_label, table.columns)]
    buttons = [f'<button type="button">{escape(name) or "method"}</button>' for name in names]
    title = escape(table.title)
    lines = [f'<div class="scroll" tabindex="0" role="region" aria-label="Table: {title}"><table><thead><tr>']
    lines += [f'<th scope="col">{button}</th>' for button in buttons] + ["</tr></thead><tbody>"]
    for row in table.rows:
        label = table.row_label(row)
        cells = [_cell(table, row, column, runs) for column in table.columns]
        lines.append(f'<tr><th scope="row" data-value="{escape(label)}">{_html(label)}</th>{"".join(cells)}</tr>')
    return "\n".join(lines) + "</tbody></table></div>"


def _cell(table: Table, row: str, column: str, runs: _Runs) -> str:
    cell = table.cells.get((row, column))
    if cell is None or not (cell.good or cell.failed):
        return '<td data-value="">–</td>'
    best = ' class="best"' if row in table.best(column) else ""
    value = "" if cell.mean is None else f"{cell.mean:.6g}"
    parts = [
        f'<td data-value="{value}"{best}><button type="button" class="number" aria-haspopup="dialog" '
        f'data-cell="{runs.add(table, cell)}">{number_text(cell.mean, cell.std, cell.unit)}</button>'
    ]
    if cell.cell.paper:
        delta = "" if cell.difference is None else f' <span class="delta {_closeness(cell)}">{_signed(cell)}</span>'
        parts.append(f'<span class="paper">{number_text(*cell.cell.paper, cell.unit)}{delta}</span>')
    if not cell.is_complete:
        failed = f", {len(cell.failed)} failed" if cell.failed else ""
        parts.append(f'<span class="paper short">n = {len(cell.good)}{failed}</span>')
    return "".join(parts) + "</td>"


def _closeness(cell: TableCell) -> str:
    """How our number is to be coloured: ``above``, ``within``, ``below`` or ``open``."""
    assert cell.difference is not None
    gain = -cell.difference if cell.unit == "s" else cell.difference
    if gain >= 0:
        return "above"
    if cell.reached is None and cell.unit != "s":
        return "open"
    return "within" if cell.reached else "below"


def _signed(cell: TableCell) -> str:
    """The difference to the paper as one writes it; of times, how many times faster ours is."""
    paper = cell.cell.paper
    if cell.unit == "s" and cell.mean and paper:
        return f"{number_text(float(f'{paper.mean / cell.mean:.2g}'), None, 's')}×"
    text = f"{cell.difference:+.{1 if cell.unit == '%' else 2}f}".replace("-", "−")
    return text if text.strip("+−0.") else f"±{text[1:]}"


def _failures(failed: Iterable[RunResult]) -> str:
    by_error: dict[str, list[RunResult]] = defaultdict(list)
    for result in failed:
        by_error[result.error].append(result)
    if not by_error:
        return ""
    items = []
    for error, results in by_error.items():
        names = "; ".join(f"{r.spec.method} on {r.spec.dataset} ({r.spec.split}, run {r.spec.run})" for r in results)
        items.append(f"<li><strong>{escape(error)}</strong><p class='muted'>{escape(names)}</p></li>")
    return (
        '<section id="failures" aria-labelledby="failures-title"><h2 id="failures-title">Runs that failed</h2>'
        f'<ul class="claims">{"".join(items)}</ul></section>'
    )


def _where(findings: Findings) -> str:
    """What was run where: a line for each device and version."""
    places: dict[tuple[str, str], list[RunResult]] = defaultdict(list)
    for result in findings.results:
        places[result.device, result.version].append(result)
    lines = []
    for (device, version), results in sorted(places.items()):
        days = sorted(result.finished[:10] for result in results if result.finished) or ["–"]
        seconds = sum(result.seconds for result in results)
        shown = (version, f"{len(results):,}", f"{seconds / 3600:.2f}", days[0], days[-1])
        lines.append(f'<tr><th scope="row">{escape(device)}</th>{"".join(f"<td>{escape(t)}</td>" for t in shown)}</tr>')
    heads = ("device", "gcnsl", "runs", "hours", "from", "to")
    unused = ""
    if findings.unused:
        unused = (
            f'<p class="note">{len(findings.unused):,} further runs have other settings or seeds than the tables.</p>'
        )
    return (
        '<section id="where" aria-labelledby="where-title"><h2 id="where-title">What was run where</h2>'
        '<div class="scroll" tabindex="0" role="region" aria-label="What was run where"><table><thead><tr>'
        + "".join(f'<th scope="col">{head}</th>' for head in heads)
        + f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>{unused}</section>"
    )


def _html(text: str) -> str:
    """Text for the page, with its subscripts set low."""
    return re.sub(r"_(cc|av)\b", r"<sub>\1</sub>", escape(text))
