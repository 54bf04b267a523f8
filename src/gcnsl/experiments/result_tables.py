"""Tables of our means and standard deviations beside the paper's, and the same as Markdown, LaTeX and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from gcnsl.experiments.display_names import column_label, row_label, split_label
from gcnsl.experiments.plan import Experiment, PlannedCell, Unit
from gcnsl.experiments.remarks import on_duplicates, on_runs
from gcnsl.experiments.result_store import RunResult


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
    """Make a table for each kind of split that has results, given by key as from ``result_store.by_key``."""
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
    for label, texts in _lines(table, bold="**{}**", above="{}<br><sub>{}</sub>"):
        lines.append(" | ".join(["| " + label.replace("*", r"\*"), *texts]) + " |")
    lines += ["", *(f"- {remark}" for remark in table.remarks)] if table.remarks else []
    title = table.title.replace("*", r"\*")
    return f"### {title}\n\n{legend}" + "\n".join(lines) + "\n"


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
    for label, texts in _lines(table, bold=r"\textbf{{{}}}", above=r"\shortstack{{{}\\ \scriptsize {}}}"):
        line = " & ".join([_latex(label), *texts]) + r" \\"
        lines.append(line.replace("–", "--").replace(" ± ", r"$\pm$"))
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{center}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _lines(table: Table, *, bold: str, above: str) -> Iterator[tuple[str, list[str]]]:
    """The name and the cells of each row, set with these formats for bold and for ours above the paper's."""
    for row in table.rows:
        texts = []
        for column in table.columns:
            cell, ours = table.cells.get((row, column)), ""
            if cell:
                ours = bold.format(cell.text) if row in table.best(column) else cell.text
                ours += f" (n = {len(cell.good)})" if cell.good and not cell.is_complete else ""
                ours += f" ({len(cell.failed)} failed)" if cell.failed else ""
            texts.append(above.format(ours, cell.paper_text) if cell and cell.paper_text else ours)
        yield table.row_label(row), texts


def _latex(text: str) -> str:
    for subscript in ("cc", "av"):
        text = text.replace(f"_{subscript}", f"$_{{{subscript}}}$")
    return text.replace("A*", "$A_*$").replace("H2GCN", "H$_2$GCN").replace("%", r"\%")


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
