"""Tables of our means and standard deviations beside the paper's, and the same as Markdown, LaTeX and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from gcnsl.experiments.display_names import column_label, row_label, split_label
from gcnsl.experiments.plan import Experiment, PlannedCell, Unit
from gcnsl.experiments.result_store import RunResult


@dataclass(frozen=True)
class TableCell:
    """A cell of a table, filled with results.

    Attributes:
        planned: The cell as it was planned, with the paper's number.
        unit: The unit of the number.
        good: The results that have the number.
        failed: The results of runs that failed.
    """

    planned: PlannedCell
    unit: Unit
    good: tuple[RunResult, ...]
    failed: tuple[RunResult, ...]

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
        return len(self.good) == len(self.planned.runs)

    def to_dict(self, experiment: Experiment) -> dict[str, Any]:
        """Plain values, for JSON."""
        paper = self.planned.paper
        return {
            "experiment": experiment.name,
            "paper_hparams": experiment.paper_hparams,
            "method": self.planned.row,
            "dataset": self.planned.column,
            "split": self.planned.split,
            "metric": self.planned.metric,
            "unit": self.unit,
            "statistic": "median" if self.unit == "s" else "mean",
            "mean": _rounded(self.mean),
            "std": _rounded(self.std),
            "runs": len(self.good),
            "planned": len(self.planned.runs),
            "failed": len(self.failed),
            "paper_mean": paper.mean if paper else None,
            "paper_std": paper.std if paper else None,
            "difference": _rounded(self.difference),
            "within_one_std_or_above": self.reached,
        }


@dataclass(frozen=True)
class Table:
    """The cells of an experiment on one kind of split.

    Attributes:
        experiment: The experiment.
        split: The kind of split.
        rows, columns: In order, without those that have no results.
        cells: All planned cells by row and column.
    """

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

    def row_label(self, row: str) -> str:
        """The name of a row for readers."""
        return row_label(row, self.experiment.name)

    def best(self, column: str) -> set[str]:
        """The rows with the best mean after rounding: the highest accuracy or the shortest time; none for homophily."""
        means = {row: self.cells[row, column].mean for row in self.rows if (row, column) in self.cells}
        known = {row: mean for row, mean in means.items() if mean is not None}
        if not known or self.experiment.unit == "h":
            return set()
        shown = {row: number_text(mean, None, self.experiment.unit) for row, mean in known.items()}
        first = (min if self.experiment.unit == "s" else max)(known, key=lambda row: known[row])
        return {row for row, text in shown.items() if text == shown[first]}


def make_tables(experiment: Experiment, results: Mapping[str, RunResult]) -> list[Table]:
    """Make a table for each kind of split that has results.

    Args:
        experiment: The plan.
        results: By the key of their specification (:func:`gcnsl.experiments.result_store.by_key`).
    """
    tables = []
    for split in dict.fromkeys(cell.split for cell in experiment.cells):
        planned = [cell for cell in experiment.cells if cell.split == split]
        cells = {(cell.row, cell.column): _fill(cell, cell.unit or experiment.unit, results) for cell in planned}
        shown = [key for key, cell in cells.items() if cell.good or cell.failed]
        if shown:
            rows = tuple(row for row in dict.fromkeys(row for row, _ in cells) if any(row == r for r, _ in shown))
            columns = tuple(c for c in dict.fromkeys(c for _, c in cells) if any(c == column for _, column in shown))
            tables.append(Table(experiment, split, rows, columns, cells))
    return tables


def _fill(cell: PlannedCell, unit: Unit, results: Mapping[str, RunResult]) -> TableCell:
    found = [results[spec.key] for spec in cell.runs if spec.key in results]
    good = tuple(result for result in found if result.metrics.get(cell.metric) is not None)
    return TableCell(cell, unit, good, tuple(result for result in found if result.status == "failed"))


def number_text(mean: float | None, std: float | None, unit: Unit, *, plus_minus: str = " ± ") -> str:
    """A mean and its standard deviation with the number of digits that suits the unit."""
    if mean is None:
        return "–"
    if unit == "s":
        return f"{mean:.0f}" if mean >= 100 else f"{mean:.3g}"
    digits = {"%": 1, "h": 2, "n": 0 if mean >= 10 else 1 if mean >= 1 else 3}[unit]
    return f"{mean:.{digits}f}" + (f"{plus_minus}{std:.{digits}f}" if std is not None else "")


def to_markdown(table: Table) -> str:
    """The table in Markdown: ours above the paper's in small print, the best of a column in bold."""
    printed = any(cell.planned.paper for cell in table.cells.values())
    legend = "Ours, and below it in small print the paper's.\n\n" if printed else ""
    lines = ["| | " + " | ".join(map(column_label, table.columns)) + " |", "| --- |" + " ---: |" * len(table.columns)]
    for label, texts in _lines(table, bold="**{}**", above="{}<br><sub>{}</sub>", plus_minus=" ± "):
        lines.append(f"| {label.replace('*', chr(92) + '*')} | " + " | ".join(texts) + " |")
    return f"### {table.title.replace('*', chr(92) + '*')}\n\n{legend}" + "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """The table in LaTeX with ``booktabs``: ours above the paper's in small print, the best of a column in bold."""
    lines = [
        r"\begin{table*}[t]",
        rf"\caption{{{_latex(table.title)}. Ours above, the paper's below.}}",
        r"\begin{center}",
        r"\begin{tabular}{l" + "c" * len(table.columns) + "}",
        r"\toprule",
        " & ".join(["", *(_latex(column_label(column)) for column in table.columns)]) + r" \\ \midrule",
    ]
    above = r"\shortstack{{{}\\ \scriptsize {}}}"
    for label, texts in _lines(table, bold=r"\textbf{{{}}}", above=above, plus_minus=r"$\pm$"):
        lines.append(" & ".join([_latex(label), *texts]).replace("–", "--") + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{center}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _lines(table: Table, *, bold: str, above: str, plus_minus: str) -> Iterator[tuple[str, list[str]]]:
    """The name and the cells of each row, set with these formats for bold and for ours above the paper's."""

    def text(cell: TableCell, *, best: bool) -> str:
        ours = number_text(cell.mean, cell.std, cell.unit, plus_minus=plus_minus)
        ours = bold.format(ours) if best else ours
        ours += "" if cell.is_complete or not cell.good else f" (n = {len(cell.good)})"
        ours += f" ({len(cell.failed)} failed)" if cell.failed else ""
        printed = cell.planned.paper
        return above.format(ours, number_text(*printed, cell.unit, plus_minus=plus_minus)) if printed else ours

    for row in table.rows:
        cells = [(table.cells.get((row, column)), row in table.best(column)) for column in table.columns]
        yield table.row_label(row), [text(cell, best=best) if cell else "" for cell, best in cells]


def _latex(text: str) -> str:
    for subscript in ("cc", "av"):
        text = text.replace(f"_{subscript}", f"$_{{{subscript}}}$")
    return text.replace("A*", "$A_*$").replace("H2GCN", "H$_2$GCN").replace("%", r"\%")


def to_dicts(tables: Iterable[Table]) -> list[dict[str, Any]]:
    """The cells of the tables as plain values for JSON, without rows and columns that have no results."""
    return [
        cell.to_dict(table.experiment)
        for table in tables
        for (row, column), cell in table.cells.items()
        if row in table.rows and column in table.columns
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
