"""Tables of our means and standard deviations beside the paper's, the names in them, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from gcnsl.datasets.benchmarks import synthetic_homophily
from gcnsl.experiments.beyond import FILTERED, PARTS, SEARCH_SPLITS, WIKIPEDIA
from gcnsl.experiments.plan import Experiment, PlannedCell, Unit
from gcnsl.experiments.records import RunResult
from gcnsl.methods import METHODS

_METHODS = {name: method.title for name, method in METHODS.items()} | {"sc": "SC", "esc": "ESC", "esc-anch": "ESC-ANCH"}
_ROWS = {
    "original": "original graph",
    "initial A*": "A* before training",
    "gcn-sl-cc A*": "A* learned by GCN-SL_cc",
    "gcn-sl-cc degree": "neighbours in the learned A*",
    "nlgnn": "learned by NLGNN",
}
_PARTS = {
    "-neighbours": "without the head on neighbours",
    "-contrast": "without the contrastive term",
    "-structure": "without the structure branch",
    "-links": "without head and branch",
    "-directions": "without directions",
}
_GRAPHS = {
    "cornell-geomgcn": "Cornell (Geom-GCN's)",
    "chameleon-filtered": "Filtered Chameleon",
    "squirrel-filtered": "Filtered Squirrel",
}
_SPLITS = {
    "random": "random splits",
    "geom-gcn": "Geom-GCN's splits",
    "stored": "the graph's own splits",
    "usual": "each graph's usual splits",
    "none": "",
}


def row_label(row: str, experiment: str = "accuracy") -> str:
    """The name of a table's row; ``_`` begins a subscript."""
    if experiment == "homophily":
        graph, _, featured = row.partition(", ")
        return _ROWS.get(graph, graph) + (", nodes with features" if featured else "")
    if experiment == "depth":
        method, _, depth = row.rpartition("-")
        return f"{_METHODS.get(method, method)}, " + (f"{depth} layers" if method == "gcn" else f"K = {depth}")
    method, _, variant = row.partition(" ")
    variant = _PARTS.get(variant) or variant.replace("+", " and ").replace("neither", "neither A nor A*")
    return _METHODS.get(method, method) + (f", {variant}" if variant else "")


def column_label(column: str) -> str:
    """The name of a graph; a comma is followed by what is made of it, as in ``"squirrel, directed"``."""
    h = synthetic_homophily(column)
    if h is not None:
        return f"h = {h:.1f}" if h == round(h, 1) else f"h = {h:g}"
    graph, _, more = column.partition(", ")
    return _GRAPHS.get(graph, graph.capitalize()) + (f" ({more})" if more else "")


def graph_of(column: str) -> str:
    """The graph of a column, whatever is made of it."""
    return column.partition(",")[0]


def split_label(split: str) -> str:
    """The name of a kind of split."""
    return _SPLITS.get(split, split)


@dataclass(frozen=True)
class TableCell:
    """A planned cell with the results that have its number, and those of runs that failed.

    If its hyper-parameters were searched for, ``trials`` says how many were tried.
    """

    planned: PlannedCell
    unit: Unit
    good: tuple[RunResult, ...]
    failed: tuple[RunResult, ...]
    trials: int | None = None

    @property
    def values(self) -> dict[int, float]:
        """The number by run; accuracies in percent."""
        scale = 100 if self.unit == "%" else 1
        return {result.spec.run: scale * result.metrics[self.planned.metric] for result in self.good}

    @property
    def mean(self) -> float | None:
        """The mean over the runs; for times the median, which one slow run does not change; ``None`` without runs."""
        if not self.good:
            return None
        return (median if self.unit == "s" else fmean)(self.values.values())

    @property
    def std(self) -> float | None:
        """The standard deviation over the runs (n − 1 in the denominator); ``None`` with fewer than two runs."""
        return stdev(self.values.values()) if len(self.good) > 1 else None

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        return None if self.mean is None or self.planned.paper is None else self.mean - self.planned.paper.mean

    @property
    def reached(self) -> bool | None:
        """Whether our mean is at least the paper's minus one of the paper's standard deviations."""
        paper = self.planned.paper
        if self.difference is None or paper is None or paper.std is None:
            return None
        return self.difference >= -paper.std

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs have the number."""
        return 0 < len(self.planned.runs) == len(self.good)

    @property
    def text(self) -> str:
        """Our mean and standard deviation."""
        return number_text(self.mean, self.std, self.unit)

    @property
    def paper_text(self) -> str:
        """The paper's mean and standard deviation; empty if it prints none."""
        return number_text(*self.planned.paper, self.unit) if self.planned.paper else ""


@dataclass(frozen=True)
class Table:
    """All planned cells of an experiment on one kind of split, and the rows and columns that have results, in order."""

    experiment: Experiment
    split: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], TableCell]

    @property
    def name(self) -> str:
        """A name for files and for links within a page."""
        return f"{self.experiment.name}-{self.split}" + ("-paper" if self.experiment.paper_hparams else "")

    @property
    def title(self) -> str:
        """A short description."""
        return ", ".join(filter(None, (self.experiment.title, self.variant)))

    @property
    def variant(self) -> str:
        """What distinguishes the table from others of the same experiment."""
        hparams = "the paper's own hyper-parameters" if self.experiment.paper_hparams else ""
        return ", ".join(filter(None, (split_label(self.split), hparams)))

    @property
    def remarks(self) -> list[str]:
        """What is to be said of the numbers, in sentences."""
        if self.experiment.name != "beyond":
            return []
        means = {key: cell.mean for key, cell in self.cells.items()}
        trials = {key: cell.trials for key, cell in self.cells.items()}
        return [*on_runs(trials, means), *on_duplicates(means)]

    def row_label(self, row: str) -> str:
        """The name of a row for readers."""
        return row_label(row, self.experiment.name)

    def best(self, column: str) -> set[str]:
        """The rows with the best mean after rounding: the highest accuracy or the shortest time; none for homophily."""
        unit, cells = self.experiment.unit, {row: self.cells.get((row, column)) for row in self.rows}
        means = {row: cell.mean for row, cell in cells.items() if cell and cell.mean is not None}
        if not means or unit == "h":
            return set()
        best = number_text((min if unit == "s" else max)(means.values()), None, unit)
        return {row for row, mean in means.items() if number_text(mean, None, unit) == best}


def make_tables(experiment: Experiment, results: Mapping[str, RunResult]) -> list[Table]:
    """Make a table for each kind of split that has results, given by key as from ``records.by_key``."""
    tables = []
    for split in dict.fromkeys(cell.split for cell in experiment.cells):
        cells = {}
        for planned in (cell for cell in experiment.cells if cell.split == split):
            found = [results[spec.key] for spec in planned.specs if spec.key in results]
            good = tuple(result for result in found if result.metrics.get(planned.metric) is not None)
            failed = tuple(result for result in found if result.status == "failed")
            trials = next((result.metrics.get("trials") for result in found if result.spec.task == "search"), None)
            unit = planned.unit or experiment.unit
            cells[planned.row, planned.column] = TableCell(planned, unit, good, failed, trials)
        shown = [key for key, cell in cells.items() if cell.good or cell.failed]
        rows, columns = ({key[axis] for key in shown} for axis in (0, 1))
        if shown:
            some_rows = tuple(dict.fromkeys(row for row, _ in cells if row in rows))
            some_columns = tuple(dict.fromkeys(column for _, column in cells if column in columns))
            tables.append(Table(experiment, split, some_rows, some_columns, cells))
    return tables


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
    printed = any(cell.planned.paper for cell in table.cells.values())
    legend = "Ours, and below it in small print the paper's.\n\n" if printed else ""
    lines = ["| | " + " | ".join(map(column_label, table.columns)) + " |", "| --- |" + " ---: |" * len(table.columns)]
    for row in table.rows:
        texts = (_markdown_cell(table, row, column) for column in table.columns)
        lines.append(" | ".join(["| " + table.row_label(row).replace("*", r"\*"), *texts]) + " |")
    lines += ["", *(f"- {remark}" for remark in table.remarks)] if table.remarks else []
    title = table.title.replace("*", r"\*")
    return f"### {title}\n\n{legend}" + "\n".join(lines) + "\n"


def _markdown_cell(table: Table, row: str, column: str) -> str:
    cell = table.cells.get((row, column))
    if cell is None:
        return ""
    ours = f"**{cell.text}**" if row in table.best(column) else cell.text
    ours += f" (n = {len(cell.good)})" if cell.good and not cell.is_complete else ""
    ours += f" ({len(cell.failed)} failed)" if cell.failed else ""
    return f"{ours}<br><sub>{cell.paper_text}</sub>" if cell.paper_text else ours


def to_dicts(tables: Iterable[Table]) -> list[dict[str, Any]]:
    """The cells of the tables as plain values for JSON, without rows and columns that have no results."""
    return [
        {
            "experiment": table.experiment.name,
            "paper_hparams": table.experiment.paper_hparams,
            "method": row,
            "dataset": column,
            "split": table.split,
            "metric": cell.planned.metric,
            "unit": cell.unit,
            "statistic": "median" if cell.unit == "s" else "mean",
            "mean": _rounded(cell.mean),
            "std": _rounded(cell.std),
            "runs": len(cell.good),
            "planned": len(cell.planned.runs),
            "failed": len(cell.failed),
            "trials": cell.trials,
            "paper_mean": cell.planned.paper and cell.planned.paper.mean,
            "paper_std": cell.planned.paper and cell.planned.paper.std,
            "difference": _rounded(cell.difference),
            "within_one_std_or_above": cell.reached,
        }
        for table in tables
        for (row, column), cell in table.cells.items()
        if row in table.rows and column in table.columns
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


TWINS, PLAIN = "twins", "gcn"
"""The method that uses nothing but duplicates, and the one that leads are measured from."""

Key = tuple[str, str]
"""Row and column of a cell. The arguments below have all planned cells, with ``None`` for those that are not run."""


def on_runs(trials: Mapping[Key, int | None], means: Mapping[Key, float | None]) -> Iterator[str]:
    """How many trials each method had, which runs count twice, and how much is not run yet."""
    known = {key: count for key, count in trials.items() if count is not None}
    most = max(known.values(), default=0)
    fewer = {row_label(row): count for (row, _), count in known.items() if count < most}
    listed = ", ".join(f"{row} {count}" for row, count in fewer.items())
    yield (
        f"Hyper-parameters are the best of {most} trials for each method and graph, judged by validation nodes of "
        f"{SEARCH_SPLITS} splits"
        + (f"; methods with fewer settings have tried all of them: {listed}." if fewer else ".")
    )
    if any(place.column in {column for _, column in means} for place in WIKIPEDIA):
        yield "Methods that do not use directions have the same runs with and without them."
    missing = sum(mean is None for mean in means.values())
    if missing:
        yield f"{missing} of {len(means)} cells are not run yet."


def on_duplicates(means: Mapping[Key, float | None]) -> Iterator[str]:
    """How much of the best method's lead over a GCN is gone when duplicates are removed from the graph."""
    planned = {column for _, column in means}
    known = {key: mean for key, mean in means.items() if mean is not None}
    for full, filtered in zip((place.column for place in WIKIPEDIA), (place.column for place in FILTERED), strict=True):
        if not {full, filtered} <= planned:
            continue
        others = {row: mean for (row, column), mean in known.items() if column == full and row not in (TWINS, *PARTS)}
        best = max(others, key=lambda row: others[row], default=PLAIN)
        needed = [(row, column) for column in (full, filtered) for row in (best, TWINS, PLAIN)]
        missing = [
            f"{row_label(row)} on {column_label(column)}" for row, column in needed if (row, column) not in known
        ]
        if missing:
            yield f"What duplicates explain on {column_label(full)} can't be said: {missing[0]} is not run yet."
        else:
            yield _explained(known, best, full, filtered)


def _explained(means: Mapping[Key, float], best: str, full: str, filtered: str) -> str:
    """What duplicates explain of the best method's lead on one graph."""
    lead, left = (means[best, column] - means[PLAIN, column] for column in (full, filtered))
    told = (
        f"{column_label(full)}: {row_label(best)} is best with {means[best, full]:.1f}. {row_label(TWINS)}, which only "
        "copies the class of the training node with the most similar neighbours, reaches "
        f"{means[TWINS, full]:.1f}, and {means[TWINS, filtered]:.1f} without duplicates."
    )
    if lead <= 0:
        return told
    share = min(1.0, max(0.0, 1 - left / lead))
    without = f"{left:.1f}".replace("-", "−")
    gap = f"The lead over {row_label(PLAIN)} is {lead:.1f} points, and {without} without duplicates"
    return f"{told} {gap}: these explain about {share:.0%} of it."
