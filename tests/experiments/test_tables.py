"""Tables: their numbers, names and remarks."""

import json

import pytest

from gcnsl.experiments.beyond import PARTS
from gcnsl.experiments.paper import Number
from gcnsl.experiments.records import RunSpec, by_spec
from gcnsl.experiments.tables import (
    Cell,
    Table,
    fill,
    on_duplicates,
    to_dicts,
    to_markdown,
)
from gcnsl.methods import METHODS

from .cases import result

RUNS = tuple(RunSpec("x", "texas", "random", run, 0, ()) for run in range(4))


def table(values: dict[str, list[float]], *, paper=None, unit="%", failed=0):
    """A table with a row for each list of values, and failures in its first row."""
    cells, results = {}, []
    for row, numbers in values.items():
        specs = tuple(RunSpec(f"made-up {row}", "texas", "random", run, 0, ()) for run in range(4))
        cells[row, "texas"] = Cell(row, "texas", "random", "test", specs, paper, unit)
        results += [result(of=spec, test=number) for spec, number in zip(specs, numbers, strict=False)]
        results += [result(of=spec, status="failed") for spec in specs[4 - failed :] if len(cells) == 1]
    (made,) = fill([Table("accuracy", "Accuracy", "random", False, cells)], by_spec(results))
    return made


def test_means_and_deviations() -> None:
    cell = table({"mlp": [0.80, 0.82, 0.84, 0.86]}, paper=Number(84.0, 1.5)).cells["mlp", "texas"]
    assert cell.mean == pytest.approx(83)
    assert cell.std == pytest.approx(2.581988897)
    assert cell.difference == pytest.approx(-1)
    assert cell.reached
    assert cell.is_complete
    assert table({"sc": [1.0, 9.0, 2.0]}, unit="s").cells["sc", "texas"].mean == 2, "of times the median counts"


def test_missing_and_failed_runs_are_seen() -> None:
    made = table({"mlp": [0.8, 0.9], "gcn": [0.5], "gat": []}, failed=1)
    mlp, gcn = (made.cells[row, "texas"] for row in ("mlp", "gcn"))
    assert (len(mlp.good), len(mlp.failed), mlp.is_complete) == (2, 1, False)
    assert (gcn.mean, gcn.std) == (50, None)
    assert "85.0 ± 7.1** (n = 2) (1 failed)" in to_markdown(made)
    assert made.rows == ("mlp", "gcn")
    assert [cell["method"] for cell in to_dicts([made])] == ["mlp", "gcn"]
    assert fill([made], {}) == []


def test_markdown() -> None:
    made = table({"gcn-sl-cc": [0.8, 0.9, 0.8, 0.9], "gcn-sl-cc A+A*": [0.7] * 4}, paper=Number(85.6, 6.2))
    assert to_markdown(made).splitlines() == [
        "### Accuracy, random splits",
        "",
        "Ours, and below it in small print the paper's.",
        "",
        "| | Texas |",
        "| --- | ---: |",
        "| GCN-SL_cc | **85.0 ± 5.8**<br><sub>85.6 ± 6.2</sub> |",
        r"| GCN-SL_cc, A and A\* | 70.0 ± 0.0<br><sub>85.6 ± 6.2</sub> |",
    ]


def test_every_experiment_makes_tables_and_json(findings) -> None:
    assert {table.name: (len(table.rows), len(table.columns)) for table in findings.tables} == {
        "accuracy-random": (10, 8),
        "accuracy-geom-gcn": (10, 8),
        "ablation-random": (8, 8),
        "spectral-random": (4, 8),
        "homophily-random": (9, 8),
        "depth-random": (6, 1),
        "runtime-none": (3, 8),
        "synthetic-random": (10, 11),
        "beyond-usual": (len(METHODS) + len(PARTS), 15),
    }
    for cell in json.loads(json.dumps(to_dicts(findings.tables), allow_nan=False)):
        assert cell["runs"] + cell["failed"] == cell["planned"]


FULL, FILTERED = "squirrel, directed", "squirrel-filtered, directed"
MEANS = {
    ("gcn", FULL): 0.4,
    ("twins", FULL): 0.747,
    ("gcn-sl-plus", FULL): 0.76,
    ("gcn-sl-plus -structure", FULL): 0.77,
    ("gcn", FILTERED): 0.38,
    ("twins", FILTERED): 0.312,
    ("gcn-sl-plus", FILTERED): 0.416,
}


def cells(means, trials=None):
    """A cell for each mean, with the number of trials of its search."""
    return {
        (row, column): Cell(
            *(row, column, "usual", "test", RUNS[:1]),
            good=() if mean is None else (result(of=RUNS[0], test=mean),),
            trials=trials and trials[row, column],
        )
        for (row, column), mean in means.items()
    }


def test_how_much_of_a_lead_duplicates_explain() -> None:
    assert list(on_duplicates(cells(MEANS))) == [
        "Squirrel (directed): GCN-SL+ is best with 76.0. Twins, which only copies the class of the training node with "
        "the most similar neighbours, reaches 74.7, and 31.2 without duplicates. The lead over GCN is 36.0 points, and "
        "3.6 without duplicates: these explain about 90% of it."
    ]
