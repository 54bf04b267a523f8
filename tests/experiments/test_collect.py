from dataclasses import replace

import pytest

from gcnsl.experiments.beyond import runs_after
from gcnsl.experiments.collect import collect
from gcnsl.experiments.paper_report import render
from gcnsl.experiments.plan import Scope, plan
from gcnsl.experiments.result_store import RunResult
from gcnsl.methods.resolver import write_settings

from .plausible import plausible_results

pytestmark = pytest.mark.usefixtures("all_methods")


@pytest.fixture
def scope(tmp_path):
    return Scope(settings=tmp_path, runs=2)


def test_all_that_was_run_is_collected(findings, scope) -> None:
    assert [table.name for table in findings.tables] == [
        "accuracy-random",
        "accuracy-geom-gcn",
        *(f"{name}-random" for name in ("ablation", "spectral", "homophily", "depth")),
        "runtime-none",
        "synthetic-random",
        "beyond-usual",
    ]
    assert findings.unused == ()
    assert collect([], settings=scope.settings).tables == ()


def test_a_part_makes_a_smaller_report(scope, tmp_path) -> None:
    part = replace(scope, methods=["mlp", "gcn-sl-cc"], datasets=["debian", "texas"], splits=["random"], runs=3)
    found = collect(plausible_results(part, names=["accuracy"]), settings=tmp_path)
    (accuracy, *_) = found.tables
    assert (accuracy.rows, accuracy.columns) == (("mlp", "gcn-sl-cc"), ("texas", "debian"))
    assert all(len(cell.planned.runs) == 3 for cell in accuracy.cells.values())
    assert "Debian" in render(found)


def test_other_splits_are_shown_where_there_are_runs_of_that_experiment_alone(scope, tmp_path) -> None:
    part = replace(scope, methods=["gcn-sl-cc"], datasets=["debian", "texas"], runs=12)
    of_accuracy = plausible_results(part, names=["accuracy"])
    published = replace(part, datasets=["texas"], splits=["geom-gcn"], runs=10)
    of_ablation = plausible_results(published, names=["ablation"])

    def shown(results) -> list[str]:
        return [table.name for table in collect(results, settings=tmp_path).tables]

    assert not any(name.endswith("geom-gcn") for name in shown(of_accuracy) if not name.startswith("accuracy"))
    assert set(shown([*of_accuracy, *of_ablation])) - set(shown(of_accuracy)) == {"ablation-geom-gcn"}
    assert "ablation-geom-gcn" in shown(of_ablation)


def test_runs_with_other_settings_are_counted_not_shown(scope, tmp_path) -> None:
    part = replace(scope, methods=["gcn-sl-cc"], datasets=["texas"], paper_hparams=True)
    results = plausible_results(part, names=["accuracy"])
    strangers = [replace(result, spec=replace(result.spec, method="unheard-of")) for result in results]
    write_settings(tmp_path / "texas.toml", "gcn-sl-cc", {"lr": 0.123}, {})
    found = collect([*results, *strangers], settings=tmp_path)
    assert {table.experiment.paper_hparams for table in found.tables} == {True}
    assert len(found.unused) == len(strangers)
    assert f"{len(strangers)} further runs have other settings or seeds" in render(found)


def test_both_kinds_of_hyperparameters_are_told_apart(scope, tmp_path) -> None:
    write_settings(tmp_path / "texas.toml", "gcn-sl-cc", {"lr": 0.123}, {})
    part = replace(scope, methods=["gcn-sl-cc"], datasets=["texas"], splits=["random"])
    results = plausible_results(part, names=["accuracy"])
    results += plausible_results(replace(part, paper_hparams=True), names=["accuracy"])
    tables = [table for table in collect(results, settings=tmp_path).tables if table.experiment.name == "accuracy"]
    assert [table.name for table in tables] == ["accuracy-random", "accuracy-random-paper"]
    assert [dict(table.cells["gcn-sl-cc", "texas"].planned.runs[0].options)["lr"] for table in tables] == [0.123, 0.01]


def test_beyond_the_paper_what_is_missing_is_counted(scope) -> None:
    part = replace(scope, methods=["mlp", "gcn"], datasets=["debian", "texas"], trials=4)
    found = collect(plausible_results(part, names=["beyond"]))
    (table,) = found.tables
    assert (table.rows, table.columns) == (("mlp", "gcn"), ("texas", "debian"))
    assert {cell.trials for cell in table.cells.values()} == {4, None}
    assert all(len(cell.planned.runs) in (0, 2) for cell in table.cells.values())
    assert f"{len(table.cells) - 4} of {len(table.cells)} cells are not run yet." in table.remarks
    assert found.unused == ()


def test_runs_that_happen_to_be_those_of_the_paper_make_no_table_of_it(scope) -> None:
    part = replace(scope, methods=["mlp"], datasets=["debian"])
    (search,) = plan("beyond", part).specs
    found = RunResult(search, "ok", {"options": {}, "trials": 16})
    runs = [RunResult(spec, "ok", {"test": 0.5}) for spec in runs_after(found, 2)]
    assert {run.spec for run in runs} == set(plan("accuracy", part).specs)
    assert [table.name for table in collect([found, *runs]).tables] == ["beyond-usual"]
