"""Tables of our means and standard deviations beside the paper's, the names in them, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean, median, stdev
from typing import Any, Literal

from gcnsl.datasets.benchmarks import synthetic_homophily
from gcnsl.experiments.beyond import FILTERED, PARTS, SEARCH_SPLITS, WIKIPEDIA
from gcnsl.experiments.paper import Number
from gcnsl.experiments.records import RunResult, RunSpec
from gcnsl.methods import METHODS

Unit = Literal["%", "s", "h", "n"]
"""Accuracy in percent, seconds, homophily, number of neighbours."""

_METHODS = {name: method.title for name, method in METHODS.items()} | {"sc": "SC", "esc": "ESC", "esc-anch": "ESC-ANCH"}
_ROWS = {
    "original": "original graph",
    "initial A*": "A* before training",
    "gcn-sl-cc A*": "A* learned by GCN-SL_cc",
    "gcn-sl-cc degree": "neighbours in the learned A*",
    "nlgnn": "learned by NLGNN",
}
_GRAPHS = {
    "cornell-geomgcn": "Cornell (Geom-GCN's)",
    "chameleon-filtered": "Filtered Chameleon",
    "squirrel-filtered": "Filtered Squirrel",
}
SPLITS = {
    "random": "random splits",
    "geom-gcn": "Geom-GCN's splits",
    "stored": "the graph's own splits",
    "usual": "each graph's usual splits",
    "none": "",
}
"""Names of the kinds of split."""
TWINS, PLAIN = "twins", "gcn"
"""The method that uses nothing but duplicates, and the one that leads are measured from."""


def row_label(row: str, experiment: str = "accuracy") -> str:
    """The name of a table's row; ``_`` begins a subscript."""
    if experiment == "homophily":
        graph, _, featured = row.partition(", ")
        return _ROWS.get(graph, graph) + (", nodes with features" if featured else "")
    if experiment == "depth":
        method, _, depth = row.rpartition("-")
        return f"{_METHODS.get(method, method)}, " + (f"{depth} layers" if method == "gcn" else f"K = {depth}")
    method, _, variant = row.partition(" ")
    variant = PARTS[row].label if row in PARTS else variant.replace("+", " and ").replace("neither", "neither A nor A*")
    return _METHODS.get(method, method) + (f", {variant}" if variant else "")


def column_label(column: str) -> str:
    """The name of a graph; a comma is followed by what is made of it, as in ``"squirrel, directed"``."""
    if (h := synthetic_homophily(column)) is not None:
        return f"h = {h:.1f}" if h == round(h, 1) else f"h = {h:g}"
    graph, _, more = column.partition(", ")
    return _GRAPHS.get(graph, graph.capitalize()) + (f" ({more})" if more else "")


@dataclass(frozen=True)
class Cell:
    """One number of a table: a metric's mean over some runs, what the paper prints, and the results as far as known.

    The row is a method or a variant of one, the column a graph. If hyper-parameters are to be found by a ``search``,
    there are no runs until it is done; ``trials`` says how many it has tried.
    """

    row: str
    column: str
    split: str
    metric: str
    runs: tuple[RunSpec, ...]
    paper: Number | None = None
    unit: Unit = "%"
    search: RunSpec | None = None
    good: tuple[RunResult, ...] = ()
    failed: tuple[RunResult, ...] = ()
    trials: int | None = None

    @property
    def specs(self) -> tuple[RunSpec, ...]:
        """The search, if there is one, and the runs."""
        return (self.search, *self.runs) if self.search else self.runs

    def filled(self, results: Mapping[RunSpec, RunResult]) -> Cell:
        """The cell with those of the results that have its number, and those of runs that failed."""
        found = [results[spec] for spec in self.specs if spec in results]
        good = tuple(result for result in found if result.metrics.get(self.metric) is not None)
        failed = tuple(result for result in found if result.status == "failed")
        trials = next((result.metrics.get("trials") for result in found if result.spec.task == "search"), None)
        return replace(self, good=good, failed=failed, trials=trials)

    @property
    def values(self) -> dict[int, float]:
        """The number by run; accuracies in percent."""
        scale = 100 if self.unit == "%" else 1
        return {result.spec.run: scale * result.metrics[self.metric] for result in self.good}

    @property
    def mean(self) -> float | None:
        """The mean over the runs; for times the median, which one slow run does not change; ``None`` without runs."""
        average = median if self.unit == "s" else fmean
        return average(self.values.values()) if self.good else None

    @property
    def std(self) -> float | None:
        """The standard deviation over the runs (n − 1 in the denominator); ``None`` with fewer than two runs."""
        return stdev(self.values.values()) if len(self.good) > 1 else None

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper.mean

    @property
    def reached(self) -> bool | None:
        """Whether our mean is at least the paper's minus one of the paper's standard deviations."""
        std = self.paper and self.paper.std
        return None if self.difference is None or std is None else self.difference >= -std

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs have the number."""
        return 0 < len(self.runs) == len(self.good)

    @property
    def text(self) -> str:
        """Our mean and standard deviation."""
        return number_text(self.mean, self.std, self.unit)

    @property
    def paper_text(self) -> str:
        """The paper's mean and standard deviation; empty if it prints none."""
        return number_text(*self.paper, self.unit) if self.paper else ""


@dataclass(frozen=True)
class Table:
    """The cells of an experiment on one kind of split, and the rows and columns that have results, in order."""

    experiment: str
    heading: str
    split: str
    paper_hparams: bool
    cells: Mapping[tuple[str, str], Cell]

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The rows that have results."""
        shown = {row for (row, _), cell in self.cells.items() if cell.good or cell.failed}
        return tuple(dict.fromkeys(row for row, _ in self.cells if row in shown))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that have results."""
        shown = {column for (_, column), cell in self.cells.items() if cell.good or cell.failed}
        return tuple(dict.fromkeys(column for _, column in self.cells if column in shown))

    @property
    def unit(self) -> Unit:
        """The unit of the first row, and of most."""
        return next(iter(self.cells.values())).unit

    @property
    def name(self) -> str:
        """A name for files and for links within a page."""
        return f"{self.experiment}-{self.split}" + ("-paper" if self.paper_hparams else "")

    @property
    def title(self) -> str:
        """A short description."""
        return ", ".join(filter(None, (self.heading, self.variant)))

    @property
    def variant(self) -> str:
        """What distinguishes the table from others of the same experiment."""
        hparams = "the paper's own hyper-parameters" if self.paper_hparams else ""
        return ", ".join(filter(None, (SPLITS[self.split], hparams)))

    @property
    def remarks(self) -> list[str]:
        """Sentences about the numbers."""
        return [*on_runs(self.cells), *on_duplicates(self.cells)] if self.experiment == "beyond" else []

    def row_label(self, row: str) -> str:
        """The name of a row for readers."""
        return row_label(row, self.experiment)

    def best(self, column: str) -> set[str]:
        """The rows with the best mean after rounding: the highest accuracy or the shortest time; none for homophily."""
        cells = {row: self.cells.get((row, column)) for row in self.rows}
        means = {row: cell.mean for row, cell in cells.items() if cell and cell.mean is not None}
        if not means or self.unit == "h":
            return set()
        best = number_text((min if self.unit == "s" else max)(means.values()), None, self.unit)
        return {row for row, mean in means.items() if number_text(mean, None, self.unit) == best}


def fill(tables: Iterable[Table], results: Mapping[RunSpec, RunResult]) -> list[Table]:
    """The planned tables with these results, without those that have none."""
    filled = (replace(each, cells={key: cell.filled(results) for key, cell in each.cells.items()}) for each in tables)
    return [table for table in filled if table.rows]


def number_text(mean: float | None, std: float | None, unit: Unit) -> str:
    """A mean and its standard deviation with the number of digits that suits the unit."""
    if mean is None:
        return "–"
    if unit == "s":
        return f"{mean:.0f}" if mean >= 100 else f"{mean:.3g}"
    digits = {"%": 1, "h": 2, "n": 0 if mean >= 10 else 1 if mean >= 1 else 3}[unit]
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std is not None else "")


def to_markdown(table: Table) -> str:
    """The table in Markdown: ours above the paper's in small print, the best of a column in bold."""
    legend = "Ours, and below it in small print the paper's.\n\n" if any(c.paper for c in table.cells.values()) else ""
    lines = ["| | " + " | ".join(map(column_label, table.columns)) + " |", "| --- |" + " ---: |" * len(table.columns)]
    for row in table.rows:
        texts = (_markdown_cell(table, row, column) for column in table.columns)
        lines.append(" | ".join(["| " + table.row_label(row).replace("*", r"\*"), *texts]) + " |")
    lines += ["", *(f"- {remark}" for remark in table.remarks)] if table.remarks else []
    return f"### {table.title}\n\n".replace("*", r"\*") + legend + "\n".join(lines) + "\n"


def _markdown_cell(table: Table, row: str, column: str) -> str:
    if not (cell := table.cells.get((row, column))):
        return ""
    ours = f"**{cell.text}**" if row in table.best(column) else cell.text
    ours += f" (n = {len(cell.good)})" if cell.good and not cell.is_complete else ""
    ours += f" ({len(cell.failed)} failed)" if cell.failed else ""
    return f"{ours}<br><sub>{cell.paper_text}</sub>" if cell.paper_text else ours


def to_dicts(tables: Iterable[Table]) -> list[dict[str, Any]]:
    """The cells of the tables as plain values for JSON, without rows and columns that have no results."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 4)

    return [
        {
            "experiment": table.experiment,
            "paper_hparams": table.paper_hparams,
            "method": row,
            "dataset": column,
            "split": table.split,
            "metric": cell.metric,
            "unit": cell.unit,
            "statistic": "median" if cell.unit == "s" else "mean",
            "mean": rounded(cell.mean),
            "std": rounded(cell.std),
            "runs": len(cell.good),
            "planned": len(cell.runs),
            "failed": len(cell.failed),
            "trials": cell.trials,
            "paper_mean": cell.paper and cell.paper.mean,
            "paper_std": cell.paper and cell.paper.std,
            "difference": rounded(cell.difference),
            "within_one_std_or_above": cell.reached,
        }
        for table in tables
        for (row, column), cell in table.cells.items()
        if row in table.rows and column in table.columns
    ]


def on_runs(cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    """The trials of each method, which runs count twice, and how much is not run yet."""
    trials = {key: cell.trials for key, cell in cells.items() if cell.trials is not None}
    most = max(trials.values(), default=0)
    fewer = {row_label(row): count for (row, _), count in trials.items() if count < most}
    listed = ", ".join(f"{row} {count}" for row, count in fewer.items())
    yield (
        f"Hyper-parameters are the best of {most} trials for each method and graph, judged by validation nodes of "
        f"{SEARCH_SPLITS} splits"
        + (f"; methods with fewer settings have tried all of them: {listed}." if fewer else ".")
    )
    if {place.column for place in WIKIPEDIA} & {column for _, column in cells}:
        yield "Methods that do not use directions have the same runs with and without them."
    if missing := sum(not cell.good for cell in cells.values()):
        yield f"{missing} of {len(cells)} cells are not run yet."


def on_duplicates(cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    """How much of the best method's lead over a GCN is gone when duplicates are removed from the graph."""
    means = {key: cell.mean for key, cell in cells.items() if cell.mean is not None}
    for full, filtered in ((a.column, b.column) for a, b in zip(WIKIPEDIA, FILTERED, strict=True)):
        others = {row: mean for (row, column), mean in means.items() if column == full and row not in (TWINS, *PARTS)}
        best = max(others, key=lambda row: others[row], default=PLAIN)
        if not {*product((best, TWINS, PLAIN), (full, filtered))} <= means.keys():
            continue
        lead, left = (means[best, column] - means[PLAIN, column] for column in (full, filtered))
        told = (
            f"{column_label(full)}: {row_label(best)} is best with {means[best, full]:.1f}. {row_label(TWINS)}, which "
            "only copies the class of the training node with the most similar neighbours, reaches "
            f"{means[TWINS, full]:.1f}, and {means[TWINS, filtered]:.1f} without duplicates."
        )
        if lead > 0:
            told += (
                f" The lead over {row_label(PLAIN)} is {lead:.1f} points, and {left:.1f}".replace("-", "−")
                + f" without duplicates: these explain about {min(1.0, max(0.0, 1 - left / lead)):.0%} of it."
            )
        yield told
