"""One page with all results: it needs no network, suits light and dark mode, and shows the runs behind every number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

from gcnsl.datasets.benchmarks import BENCHMARKS
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import PARTS, WHOLE
from gcnsl.experiments.claims import METHOD, by_origin, not_run, tally
from gcnsl.experiments.collect import Findings
from gcnsl.experiments.display_names import column_label, graph_of, split_label
from gcnsl.experiments.plan import MERGES
from gcnsl.experiments.result_figures import draw
from gcnsl.experiments.result_store import RunResult, by_error
from gcnsl.experiments.result_tables import Table, TableCell, number_text
from gcnsl.pictures import find_template

_COLUMNS = ["run", "seed", "val. accuracy", "best epoch", "epochs", "seconds", "split", "device", "gcnsl", "finished"]
_METRICS = {"test": "test accuracy", "test_roc_auc": "test ROC-AUC"}


def render(findings: Findings) -> str:
    """The page as HTML."""
    filters: dict[str, Any] = {"subscripts": _subscripts, "difference": _difference, "closeness": _closeness}
    return find_template("gcnsl.experiments", "report.html.j2", **filters, graph_of=graph_of).render(
        findings=findings,
        cards=list(_cards(findings)),
        method=METHOD,
        claims=by_origin(findings.claims),
        tally=tally(findings.claims),
        not_run=not_run(findings.claims),
        failures=by_error(findings.results),
        notes={name: "; ".join(graph.notes) for name, graph in BENCHMARKS.items() if graph.notes},
        column_label=column_label,
        draw=draw,
        runs=_Runs(),
    )


def _subscripts(text: str) -> Markup:
    """The text with its subscripts set low."""
    return Markup(re.sub(r"_(cc|av)\b", r"<sub>\1</sub>", str(escape(text))))


class _Runs:
    """The runs as the page's script reads them: cells refer to runs and hyper-parameters, stored once, by number."""

    def __init__(self) -> None:
        self.data: dict[str, list[Any]] = {"columns": _COLUMNS, "cells": [], "groups": [], "runs": []}
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, table: Table, cell: TableCell) -> int:
        """Store a cell's runs and return the cell's number."""
        planned = cell.planned
        spec = planned.specs[-1]
        where = ", ".join(filter(None, (column_label(planned.column), split_label(spec.split))))
        self.data["cells"].append(
            {
                "title": f"{table.row_label(planned.row)} on {where}",
                "text": _sentence(cell),
                "metric": _METRICS.get(planned.metric, {"h": "h", "n": "neighbours"}.get(cell.unit, planned.metric)),
                "group": self._number("groups", spec.group.key, dict(spec.options)),
                "runs": [
                    [number_text(value, None, cell.unit), self._number("runs", result.spec.key, _line(result))]
                    for result, value in zip(cell.good, cell.values.values(), strict=True)
                ],
                "failed": [[result.spec.run, result.error] for result in cell.failed],
            }
        )
        return len(self.data["cells"]) - 1

    def _number(self, kind: str, key: str, value: Any) -> int:
        if (kind, key) not in self._numbers:
            self._numbers[kind, key] = len(self.data[kind])
            self.data[kind].append(value)
        return self._numbers[kind, key]


def _line(result: RunResult) -> list[Any]:
    metrics, spec = result.metrics, result.spec
    return [
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


def _closeness(cell: TableCell) -> str:
    """The colour of the difference to the paper: ``"above"``, ``"within"``, ``"below"`` or ``"open"``."""
    if cell.difference is not None and (cell.difference <= 0 if cell.unit == "s" else cell.difference >= 0):
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
    ours = f"{cell.text} over {len(cell.good)} of {len(cell.planned.runs)} runs"
    if cell.trials is not None:
        return f"{ours}, with the best hyper-parameters of {cell.trials} trials."
    if not cell.paper_text:
        return f"{ours}. The paper prints no number here."
    delta = ""
    if cell.difference is not None:
        text = _difference(cell)
        delta = f", ours is {text} as fast" if cell.unit == "s" else f", a difference of {text}"
    return f"{ours}; the paper prints {cell.paper_text}{delta}."


def _cards(findings: Findings) -> Iterator[tuple[str, str]]:
    """Numbers for the summary, each with a few words."""
    for table in findings.tables:
        if table.experiment.name == "accuracy" and not table.experiment.paper_hparams:
            cells = [cell for (row, _), cell in table.cells.items() if row in MERGES]
            known = [cell.reached for cell in cells if cell.reached is not None]
            missing = len(MERGES) * len(paper.DATASETS) - len(known)
            if known:
                text = f"GCN-SL accuracies reach the paper's, {split_label(table.split)}"
                yield f"{sum(known)} of {len(known)}", text + (f"; {missing} not run" if missing else "")
        if WHOLE in table.rows:
            means = {
                key: cell.mean for key, cell in table.cells.items() if key[0] not in PARTS and cell.mean is not None
            }
            compared = [column for column in table.columns if (WHOLE, column) in means]
            best = [max((key for key in means if key[1] == column), key=lambda key: means[key]) for column in compared]
            text = "graphs, with and without directions, on which GCN-SL+ has the best mean of all methods run there"
            yield f"{sum(row == WHOLE for row, _ in best)} of {len(compared)}", text
