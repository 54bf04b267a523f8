from dataclasses import replace

import pytest

from gcnsl.experiments.collect import collect
from gcnsl.experiments.paper_report import render
from gcnsl.experiments.plan import Scope
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
