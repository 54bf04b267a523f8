"""All results on one page: it needs no network, suits light and dark mode, and shows the runs behind every number."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup, escape

from gcnsl.datasets import NAMES
from gcnsl.datasets.benchmarks import BENCHMARKS, GEOM_GCN_RUNS
from gcnsl.experiments import paper
from gcnsl.experiments.beyond import PARTS, PLACES, WHOLE
from gcnsl.experiments.claims import METHOD, Claim, by_origin, judge, not_run, tally
from gcnsl.experiments.figures import draw
from gcnsl.experiments.plan import MERGES, OF_PAPER, Scope, plan, specs_of, splits_of
from gcnsl.experiments.records import RunResult, RunSpec, by_error, by_spec
from gcnsl.experiments.tables import SPLITS, Cell, Table, column_label, fill, number_text
from gcnsl.methods import METHODS
from gcnsl.pictures import find_template

_COLUMNS = ["run", "seed", "val. accuracy", "best epoch", "epochs", "seconds", "split", "device", "gcnsl", "finished"]
_METRICS = {"test": "test accuracy", "test_roc_auc": "test ROC-AUC"}


@dataclass(frozen=True)
class Findings:
    """All results, tables of them and what they say of the paper's claims, and results that no table shows."""

    results: tuple[RunResult, ...]
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    unused: tuple[RunResult, ...]


def collect(results: Sequence[RunResult], *, seed: int = paper.SEED) -> Findings:
    """Fill every table that there are results for, with the usual or the paper's own settings and this seed."""
    found = by_spec(results)
    beyond = _beyond(found, seed=seed)
    others = found.keys() - set(specs_of(beyond))
    planned = [*_of_paper(found.keys(), _scopes(others, seed=seed)), *beyond]
    tables, used = fill(planned, found), set(specs_of(planned))
    unused = tuple(result for spec, result in found.items() if spec not in used)
    return Findings(tuple(results), tuple(tables), tuple(judge(tables)), unused)


def _scopes(specs: Collection[RunSpec], *, seed: int) -> list[Scope]:
    """The scopes to show, wide enough for all of these runs: the usual and the paper's own hyper-parameters.

    Both are on the splits that an experiment asks for, then on Geom-GCN's.
    """
    graphs = {spec.dataset for spec in specs} & set(NAMES)
    methods = sorted({spec.method for spec in specs} & METHODS.keys())
    datasets = [*(name for name in paper.DATASETS if name in graphs), *sorted(graphs - paper.DATASETS.keys())]
    runs = max((spec.run for spec in specs), default=0) + 1
    usual = Scope(methods=methods, datasets=datasets, runs=runs, seed=seed)
    printed = replace(usual, methods=[name for name in methods if name in MERGES], paper_hparams=True)
    published = [name for name in datasets if "geom-gcn" in splits_of(name)]
    other: Any = {"splits": ["geom-gcn"], "datasets": published, "runs": min(runs, GEOM_GCN_RUNS)}
    return [usual, printed, replace(usual, **other), replace(printed, **other)]


def _of_paper(finished: Collection[RunSpec], scopes: Sequence[Scope]) -> Iterator[Table]:
    """The tables to show, each with as many runs per cell as there are results of.

    A scope of an experiment is shown for finished runs that no scope before it has and, on splits that the experiment
    does not ask for, no experiment before it: the accuracy table's runs would make an ablation of one row there.
    """
    shown_before = set[RunSpec]()
    for name in OF_PAPER:
        shown = set[RunSpec]()
        for scope in scopes:
            new = {spec for spec in specs_of(plan(name, scope)) if spec in finished} - shown
            new -= shown_before if scope.splits else set()
            if new:
                shown |= new
                yield from plan(name, replace(scope, runs=max(spec.run for spec in new) + 1))
        shown_before |= shown


def _beyond(results: Mapping[RunSpec, RunResult], *, seed: int) -> list[Table]:
    """The experiment beyond the paper, if any of it was run; with all of its cells, to show what is missing."""
    searches = [spec for spec in results if spec.task == "search"]
    if not searches:
        return []
    datasets = list(dict.fromkeys([*(place.dataset for place in PLACES), *(spec.dataset for spec in searches)]))
    trials = max(dict(spec.options)["search_trials"] for spec in searches)
    runs = max(spec.run for spec in results) + 1
    scope = Scope(datasets=datasets, runs=runs, seed=seed, trials=trials, results=results)
    done = [spec.run for spec in specs_of(plan("beyond", scope)) if spec in results]
    return plan("beyond", replace(scope, runs=max(done, default=0) + 1))


def render(findings: Findings) -> str:
    """The page as HTML."""
    filters: dict[str, Any] = {"subscripts": _subscripts, "difference": _difference, "closeness": _closeness}
    filters["graph_of"] = lambda column: column.partition(",")[0]
    return find_template("gcnsl.experiments", "report.html.j2", **filters).render(
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
        self._numbers: dict[tuple[str, RunSpec], int] = {}

    def add(self, table: Table, cell: Cell) -> int:
        """Store a cell's runs and return the cell's number."""
        spec = cell.specs[-1]
        where = ", ".join(filter(None, (column_label(cell.column), SPLITS[spec.split])))
        self.data["cells"].append(
            {
                "title": f"{table.row_label(cell.row)} on {where}",
                "text": _sentence(cell),
                "metric": _METRICS.get(cell.metric, {"h": "h", "n": "neighbours"}.get(cell.unit, cell.metric)),
                "group": self._number("groups", spec.group, dict(spec.options)),
                "runs": [
                    [number_text(value, None, cell.unit), self._number("runs", result.spec, _line(result))]
                    for result, value in zip(cell.good, cell.values.values(), strict=True)
                ],
                "failed": [[result.spec.run, result.error] for result in cell.failed],
            }
        )
        return len(self.data["cells"]) - 1

    def _number(self, kind: str, key: RunSpec, value: Any) -> int:
        number = self._numbers.setdefault((kind, key), len(self.data[kind]))
        self.data[kind] += [value] if number == len(self.data[kind]) else []
        return number


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


def _closeness(cell: Cell) -> str:
    """The colour of the difference to the paper: ``"above"``, ``"within"``, ``"below"`` or ``"open"``."""
    if cell.difference is not None and (cell.difference <= 0 if cell.unit == "s" else cell.difference >= 0):
        return "above"
    if cell.reached is None and cell.unit != "s":
        return "open"
    return "within" if cell.reached else "below"


def _difference(cell: Cell) -> str:
    """The difference to the paper with its sign; for times, how many times as fast ours is."""
    printed = cell.paper
    if cell.unit == "s" and cell.mean and printed:
        return f"{number_text(float(f'{printed.mean / cell.mean:.2g}'), None, 's')}×"
    text = f"{cell.difference:+.{1 if cell.unit == '%' else 2}f}".replace("-", "−")
    return text if text.strip("+−0.") else f"±{text[1:]}"


def _sentence(cell: Cell) -> str:
    ours = f"{cell.text} over {len(cell.good)} of {len(cell.runs)} runs"
    if cell.trials is not None:
        return f"{ours}, with the best hyper-parameters of {cell.trials} trials."
    if not cell.paper_text:
        return f"{ours}. The paper prints no number here."
    words = "ours is {} as fast" if cell.unit == "s" else "a difference of {}"
    delta = "" if cell.difference is None else ", " + words.format(_difference(cell))
    return f"{ours}; the paper prints {cell.paper_text}{delta}."


def _cards(findings: Findings) -> Iterator[tuple[str, str]]:
    """Numbers for the summary, each with a few words."""
    for table in findings.tables:
        if table.experiment == "accuracy" and not table.paper_hparams:
            cells = [cell for (row, _), cell in table.cells.items() if row in MERGES]
            known = [cell.reached for cell in cells if cell.reached is not None]
            missing = len(MERGES) * len(paper.DATASETS) - len(known)
            if known:
                text = f"GCN-SL accuracies reach the paper's, {SPLITS[table.split]}"
                yield f"{sum(known)} of {len(known)}", text + (f"; {missing} not run" if missing else "")
        if WHOLE in table.rows:
            means = {
                key: each.mean for key, each in table.cells.items() if key[0] not in PARTS and each.mean is not None
            }
            ours = {column: mean for (row, column), mean in means.items() if row == WHOLE}
            best = sum(mean == max(means[key] for key in means if key[1] == column) for column, mean in ours.items())
            text = "graphs, with and without directions, on which GCN-SL+ has the best mean of all methods run there"
            yield f"{best} of {len(ours)}", text
