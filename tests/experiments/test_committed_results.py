"""What the repository says of its own runs is what they say."""

import re
from pathlib import Path

import pytest

from gcnsl.experiments.plan import OF_PAPER, plan, specs_of
from gcnsl.experiments.records import by_spec, read_results
from gcnsl.experiments.report import collect
from gcnsl.experiments.tables import column_label, number_text, row_label

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def committed():
    return collect(read_results(ROOT / "results" / "results.jsonl"))


def test_every_run_of_the_paper_s_tables_is_there_and_went_well(committed) -> None:
    good = {spec for spec, result in by_spec(committed.results).items() if result.status == "ok"}
    assert good >= set(specs_of(table for name in OF_PAPER for table in plan(name)))


@pytest.mark.parametrize("page", ["README.md", "docs/reproduction.md", "docs/beyond.md"])
def test_tables_of_pages_are_of_these_runs(committed, page) -> None:
    known, checked = {}, 0  # the numbers of each row, by its name and the graph's
    for table in committed.tables:
        if table.name in ("ablation-random", "accuracy-random", "beyond-usual"):
            for (row, column), cell in table.cells.items():
                place = re.sub(r"_(\w+)", r"<sub>\1</sub>", row_label(row)), column_label(column).partition(" (Geom")[0]
                known.setdefault(place, set()).add(number_text(cell.mean, None, "%"))
    heads: list[str] = []
    for line in re.findall(r"^\| (.+) \|$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE):
        name, *numbers = (
            line.removeprefix("| ").split(" | ") if not line.startswith("|") else ("", *line[2:].split(" | "))
        )
        heads = numbers if not name else heads
        for head, number in zip(heads, numbers, strict=False):
            if (name.strip(), head) in known and number:
                assert number.split(" *")[0].strip("*") in known[name.strip(), head], (name, head)
                checked += 1
    assert checked >= 40
