"""The paper's numbers, and which runs its tables are made of, and those beyond it."""

from dataclasses import replace

import pytest

from gcnsl.experiments import beyond, paper
from gcnsl.experiments.beyond import PARTS, WHOLE, Place
from gcnsl.experiments.plan import Scope, plan, specs_of
from gcnsl.experiments.records import RunResult, by_spec
from gcnsl.experiments.tables import Cell
from gcnsl.methods import METHODS


def test_the_paper_s_tables_are_complete() -> None:
    for table, rows in ((paper.ACCURACY, 9), (paper.ABLATION, 6)):
        assert len(table) == rows
        assert all(cells.keys() == paper.DATASETS.keys() for cells in table.values())
    without = {method for method, row in paper.ACCURACY.items() if any(cell.std is None for cell in row.values())}
    assert without == {"geom-gcn"}
    differ = {
        (method, dataset): (number.mean, paper.ACCURACY[method][dataset].mean)
        for method in ("gcn-sl-cc", "gcn-sl-av")
        for dataset, number in paper.ABLATION[f"{method} A+A*"].items()
        if number != paper.ACCURACY[method][dataset]
    }
    assert differ == {("gcn-sl-cc", "cora"): (88.8, 89.2), ("gcn-sl-av", "wisconsin"): (86.0, 86.1)}


pytestmark = pytest.mark.usefixtures("all_methods")


def cells_of(name, scope=None) -> list[Cell]:
    return [cell for table in plan(name, scope) for cell in table.cells.values()]


@pytest.mark.parametrize(
    ("name", "cells", "runs"),
    [
        ("accuracy", 10 * 8 * 2, 10 * 8 * 2 * 10),
        ("ablation", 4 * 2 * 8, 4 * 2 * 8 * 10),
        ("spectral", 2 * 2 * 8, 2 * 2 * 8 * 10),
        ("homophily", 9 * 8, 2 * 8 * 10),
        ("depth", 6, 6 * 10),
        ("runtime", 3 * 8, 3 * 8 * 3),
        ("synthetic", 10 * 11, 10 * 11 * 10),
    ],
)
def test_counts(name, cells, runs) -> None:
    tables = plan(name)
    assert sum(len(table.cells) for table in tables) == cells
    assert len(specs_of(tables)) == runs


def test_beyond_the_paper_runs_are_planned_once_their_search_is_done() -> None:
    scope = Scope(methods=["mlp", "gcn"], datasets=["chameleon", "debian"], runs=12, trials=5)
    first = specs_of(plan("beyond", scope))
    assert {(cell.row, cell.column) for cell in cells_of("beyond", scope)} == {
        (row, column) for row in ("mlp", "gcn") for column in ("chameleon, directed", "chameleon", "debian")
    }
    assert len(first) == 4, "neither method uses directions"
    assert {(spec.task, dict(spec.options)["search_trials"]) for spec in first} == {("search", 5)}
    done = [RunResult(spec, "ok", {"options": {"lr": 0.02}}) for spec in first if spec.method == "mlp"]
    second = cells_of("beyond", replace(scope, results=by_spec(done)))
    assert {(cell.row, cell.column): len(cell.runs) for cell in second} == {
        ("mlp", "chameleon, directed"): 10,
        ("mlp", "chameleon"): 10,
        ("mlp", "debian"): 12,
        **{("gcn", column): 0 for column in ("chameleon, directed", "chameleon", "debian")},
    }


def test_options_are_complete_and_changed_where_they_should_be() -> None:
    scope = Scope(paper_hparams=True)
    for cell in cells_of("ablation", scope):
        options, variant = dict(cell.runs[0].options), cell.row.split()[1]
        assert (options["use_adjacency"], options["use_reconnected"]) == ("A" in variant.split("+"), "A*" in variant)
        assert options.items() >= paper.hyperparameters(cell.column).items()
        assert options["merge"] == ("concat" if "cc" in cell.row else "average")
    with_f = {c.row: dict(c.runs[0].options)["use_spectral"] for c in cells_of("spectral", scope)}
    assert with_f == {row: "without" not in row for row in with_f}
    depth = {c.row: dict(c.runs[0].options) for c in cells_of("depth", scope)}
    assert [depth[f"gcn-{k}"]["num_layers"] for k in (3, 4, 5)] == [3, 4, 5]
    assert [depth[f"gcn-sl-cc-{k}"]["rounds"] for k in (3, 4, 5)] == [3, 4, 5]
    assert all(options["epochs"] == options["patience"] for options in depth.values())
    assert all(spec.curves for spec in specs_of(plan("depth", scope)))


SQUIRREL = Place("squirrel", "geom-gcn", directed=True)


def search(name: str, place: Place = SQUIRREL, **fixed):
    return beyond.search_spec(name, place, seed=3, trials=5, **fixed)


def test_what_a_search_begins_with() -> None:
    plain = dict(search("gcn-sl-cc", Place("texas", "geom-gcn")).options)
    assert plain == METHODS["gcn-sl-cc"].options() | {"search_trials": 5, "search_splits": 2}, "not published settings"
    for part in PARTS.values():
        assert beyond.searched_method(search(WHOLE, **part.without)) == METHODS[WHOLE].with_options(**part.without)
    assert search(WHOLE).directed
    assert search("mlp") == search("mlp", SQUIRREL._replace(directed=False)), "it uses no directions"
    spec = search("mlp", Place("minesweeper", "stored", metric="roc-auc"))
    assert (spec.metric, dict(spec.options)["monitor"]) == ("roc-auc", "roc-auc"), "it chooses the epoch, too"
