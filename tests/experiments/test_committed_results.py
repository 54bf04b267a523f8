"""What the repository says of its own runs is what they say."""

import re
from pathlib import Path

import pytest

from gcnsl.experiments import paper
from gcnsl.experiments.claims import to_markdown as claims_to_markdown
from gcnsl.experiments.plan import COMPARED, OF_PAPER, plan
from gcnsl.experiments.records import by_key, read_results
from gcnsl.experiments.report import collect
from gcnsl.experiments.tables import column_label, number_text, row_label, to_markdown

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def committed():
    return collect(read_results(ROOT / "results" / "results.jsonl"))


@pytest.mark.parametrize("name", OF_PAPER)
def test_every_planned_run_is_there_and_went_well(committed, name) -> None:
    good = {key for key, result in by_key(committed.results).items() if result.status == "ok"}
    assert good >= {spec.key for spec in plan(name).specs}
    assert committed.unused == ()


def test_the_tables_are_of_these_runs(committed) -> None:
    claims_and_tables = (claims_to_markdown(committed.claims), *map(to_markdown, committed.tables))
    assert (ROOT / "results" / "tables.md").read_text(encoding="utf-8") == "\n".join(claims_and_tables)


def rows_of(page: str) -> dict[str, list[str]]:
    """The rows of a page's tables by their first cell."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = (line.split(" | ") for line in re.findall(r"^\| (.+) \|$", text, flags=re.MULTILINE))
    return {name: numbers for name, *numbers in lines}


def shown_name(row: str) -> str:
    return re.sub(r"_(\w+)", r"<sub>\1</sub>", row_label(row))


def test_the_table_of_accuracies_is_of_these_runs(committed) -> None:
    (table,) = [table for table in committed.tables if table.name == "accuracy-random"]
    rows = rows_of("docs/reproduction.md")
    for row in COMPARED:
        for column, told in zip(paper.DATASETS, rows[shown_name(row)], strict=True):
            cell, printed = table.cells.get((row, column)), paper.ACCURACY.get(row, {}).get(column)
            ours = number_text(cell and cell.mean, None, "%")
            ours = f"**{ours}**" if row in table.best(column) else ours
            theirs = f" *{number_text(printed.mean, None, '%')}*" if printed else ""
            assert told == ours + theirs


def test_the_tables_beyond_the_paper_are_of_these_runs(committed) -> None:
    (table,) = [table for table in committed.tables if table.name == "beyond-usual"]
    rows = {shown_name(row): row for row in table.rows}
    columns = {column_label(column): column for column in table.columns}
    page = (ROOT / "docs" / "beyond.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| \| (.+) \|\n.+\n((?:\|.+\|\n)+)", page, flags=re.MULTILINE)
    assert len(found) == 2
    for heads, lines in found:
        for line in lines.splitlines():
            name, *told = line[2:-2].split(" | ")
            for head, number in zip(heads.split(" | "), told, strict=True):
                cell = table.cells.get((rows[name], columns[head]))
                ours = number_text(cell.mean, None, "%") if cell else ""
                ours = f"**{ours}**" if rows[name] in table.best(columns[head]) else ours
                assert number == ours
    assert len(table.cells) == 339
    assert all(cell.is_complete for cell in table.cells.values())


def test_the_readme_s_table_is_of_these_runs(committed) -> None:
    tables = {table.name: table for table in committed.tables}
    known = {
        shown_name(row): (name, row) for name in ("ablation-random", "accuracy-random") for row in tables[name].rows
    }
    rows = {known[name]: numbers for name, numbers in rows_of("README.md").items() if name in known}
    assert len(rows) > 3
    for index, column in enumerate(paper.DATASETS):
        means = {place: number_text(tables[place[0]].cells[place[1], column].mean, None, "%") for place in rows}
        best = max(means.values(), key=float)
        for place, numbers in rows.items():
            assert numbers[index] == (f"**{best}**" if means[place] == best else means[place])
