"""The paper's numbers, and which runs its tables are made of, and those beyond it."""

from dataclasses import replace

import pytest

from gcnsl import load
from gcnsl.experiments import beyond, paper
from gcnsl.experiments.beyond import OTHERS, PARTS, PLACES, WHOLE, WIKIPEDIA, Place
from gcnsl.experiments.plan import COMPARED, Scope, plan
from gcnsl.experiments.records import RunResult, by_key
from gcnsl.methods import METHODS, resolve
from gcnsl.methods.resolver import write_settings


def test_tables_are_complete() -> None:
    for table in (paper.ACCURACY, paper.ABLATION):
        assert all(cells.keys() == paper.DATASETS.keys() for cells in table.values())
    assert len(paper.ACCURACY) == 9
    assert len(paper.ABLATION) == 6
    assert set(paper.CITATION + paper.WIKIPEDIA + paper.WEBKB) == paper.DATASETS.keys()
    without = [
        (method, dataset) for method, row in paper.ACCURACY.items() for dataset in row if row[dataset].std is None
    ]
    assert without == [("geom-gcn", dataset) for dataset in paper.DATASETS]


def test_the_full_model_of_the_ablation_is_that_of_the_comparison_but_for_two_cells() -> None:
    differ = {
        (method, dataset): (number.mean, paper.ACCURACY[method][dataset].mean)
        for method in ("gcn-sl-cc", "gcn-sl-av")
        for dataset, number in paper.ABLATION[f"{method} A+A*"].items()
        if number != paper.ACCURACY[method][dataset]
    }
    assert differ == {("gcn-sl-cc", "cora"): (88.8, 89.2), ("gcn-sl-av", "wisconsin"): (86.0, 86.1)}


def test_bold_is_not_always_the_largest() -> None:
    largest = {
        dataset: max(paper.ACCURACY, key=lambda method, on=dataset: paper.ACCURACY[method][on].mean)
        for dataset in paper.DATASETS
    }
    differ = {dataset: largest[dataset] for dataset in largest if largest[dataset] != paper.BOLD[dataset]}
    assert differ == {"citeseer": "geom-gcn", "chameleon": "geom-gcn", "wisconsin": "h2gcn-1"}


@pytest.mark.parametrize("dataset", paper.DATASETS)
def test_hyperparameters_are_options_of_both_merges(dataset) -> None:
    options = paper.hyperparameters(dataset)
    assert len(options) == 13, "nine of the paper's, four where it is silent"
    for name in ("gcn-sl-cc", "gcn-sl-av"):
        assert METHODS[name].with_options(**options).options().items() >= options.items()
    assert options["n_components"] <= options["n_anchors"] < paper.DATASETS[dataset].nodes


pytestmark = pytest.mark.usefixtures("all_methods")


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
    experiment = plan(name)
    assert len(experiment.cells) == cells
    assert len(experiment.specs) == len({spec.key for spec in experiment.specs}) == runs


def test_cells_have_the_paper_s_number() -> None:
    cells = {(c.row, c.column, c.split): c.paper for c in plan("accuracy").cells}
    assert cells["mlp", "texas", "geom-gcn"] == cells["mlp", "texas", "random"] == (81.9, 4.8)
    assert cells["nlgnn", "texas", "random"] is None
    ablation = {(c.row, c.column): c.paper for c in plan("ablation").cells}
    assert ablation["gcn-sl-av A", "cora"] == (88.7, 0.6)
    assert ablation["gcn-sl-cc A*", "cora"] is None
    homophily = {(c.row, c.column): c.paper for c in plan("homophily").cells}
    assert homophily["original", "texas"] == (0.11, None)
    assert homophily["gcn-sl-cc A*", "texas"] is None
    assert {c.row for c in plan("runtime").cells if c.column == "pubmed" and c.paper is None} == {"sc"}


def test_beyond_the_paper_runs_are_planned_once_their_search_is_done() -> None:
    scope = Scope(methods=["mlp", "gcn"], datasets=["chameleon", "debian"], runs=12, trials=5)
    first = plan("beyond", scope)
    assert {(cell.row, cell.column) for cell in first.cells} == {
        (row, column) for row in ("mlp", "gcn") for column in ("chameleon, directed", "chameleon", "debian")
    }
    assert len(first.specs) == 4, "neither method uses directions"
    assert {(spec.task, dict(spec.options)["search_trials"]) for spec in first.specs} == {("search", 5)}
    done = [RunResult(spec, "ok", {"options": {"lr": 0.02}}) for spec in first.specs if spec.method == "mlp"]
    second = plan("beyond", replace(scope, results=by_key(done)))
    assert {(cell.row, cell.column): len(cell.runs) for cell in second.cells} == {
        ("mlp", "chameleon, directed"): 10,
        ("mlp", "chameleon"): 10,
        ("mlp", "debian"): 12,
        **{("gcn", column): 0 for column in ("chameleon, directed", "chameleon", "debian")},
    }
    assert set(second.specs) > set(first.specs)


def test_beyond_the_paper_all_methods_are_run() -> None:
    cells = plan("beyond").cells
    assert {cell.row for cell in cells if " " not in cell.row} == METHODS.keys()
    assert len({cell.column for cell in cells}) == 15
    stored = Scope(datasets=["minesweeper", "chameleon-filtered"], splits=["stored"])
    assert {cell.column for cell in plan("beyond", stored).cells} == {
        "minesweeper, ROC-AUC",
        "chameleon-filtered, directed",
    }
    random = Scope(datasets=["minesweeper", "debian"], splits=["random"])
    assert {cell.column for cell in plan("beyond", random).cells} == {"debian"}


def test_options_are_complete_and_changed_where_they_should_be() -> None:
    scope = Scope(paper_hparams=True)
    for cell in plan("ablation", scope).cells:
        options = dict(cell.runs[0].options)
        assert (options["use_adjacency"], options["use_reconnected"]) == (
            "A" in cell.row.split()[1].split("+"),
            "A*" in cell.row,
        )
        assert options.items() >= paper.hyperparameters(cell.column).items()
        assert options["merge"] == ("concat" if "cc" in cell.row else "average")
    with_f = {c.row: dict(c.runs[0].options)["use_spectral"] for c in plan("spectral", scope).cells}
    assert with_f == {row: "without" not in row for row in with_f}
    assert len(with_f) == 4
    depth = {c.row: dict(c.runs[0].options) for c in plan("depth", scope).cells}
    assert [depth[f"gcn-{k}"]["num_layers"] for k in (3, 4, 5)] == [3, 4, 5]
    assert [depth[f"gcn-sl-cc-{k}"]["rounds"] for k in (3, 4, 5)] == [3, 4, 5]
    assert all(options["epochs"] == options["patience"] for options in depth.values())
    assert all(spec.curves for spec in plan("depth", scope).specs)


def test_a_folder_of_settings_goes_before_the_published_ones_and_the_paper_s_before_both(tmp_path) -> None:
    write_settings(tmp_path / "texas.toml", "gcn-sl-cc", {"lr": 0.5, "feature_norm": "none"}, {"trials": 3})
    part = Scope(methods=["gcn-sl"], splits=["random"], runs=1)
    published, searched, printed = (
        {cell.column: dict(cell.runs[0].options) for cell in plan("accuracy", scope).cells}
        for scope in (part, replace(part, settings=tmp_path), replace(part, settings=tmp_path, paper_hparams=True))
    )
    assert searched["texas"] == published["texas"] | {"lr": 0.5, "feature_norm": "none"}
    assert searched["cora"] == published["cora"] == resolve("gcn-sl-cc", benchmark="cora").options()
    for name, options in printed.items():
        assert options == METHODS["gcn-sl-cc"].options() | paper.hyperparameters(name)


def test_the_first_runs() -> None:
    scope = Scope(methods=["mlp"], datasets=["texas"], runs=12)
    for name in ("accuracy", "runtime"):
        for runs in (1, 2, 5, 11):
            assert plan(name, scope).first_runs(runs) == plan(name, replace(scope, runs=runs))


def test_parts() -> None:
    scope = Scope(methods=["h2gcn", "mlp"], datasets=["texas", "debian"], runs=3)
    experiment = plan("accuracy", scope)
    assert {(c.row, c.column, c.split) for c in experiment.cells} == {
        (method, *place)
        for method in ("mlp", "h2gcn-2")
        for place in (("texas", "random"), ("texas", "geom-gcn"), ("debian", "random"))
    }
    assert {len(c.runs) for c in experiment.cells} == {3}
    assert plan("homophily", scope).cells == ()
    assert {c.column for c in plan("runtime", scope).cells} == {"texas", "debian"}
    assert len(plan("accuracy", Scope(datasets=["texas"], runs=12)).specs) == len(COMPARED) * (12 + 10)


SQUIRREL = Place("squirrel", "geom-gcn", directed=True)


def search(name: str, place: Place = SQUIRREL, **fixed):
    return beyond.search_spec(name, place, seed=3, trials=5, **fixed)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.column)
def test_every_place_can_be_loaded(place, data_root) -> None:
    data = load(place.dataset, split=place.split, directed=place.directed, root=data_root)
    assert ("arc_index" in data) is place.directed
    assert data.test_mask.shape == (data.num_nodes, 10)


def test_places_of_a_graph() -> None:
    assert [place.directed for place in beyond.places_of("squirrel")] == [True, False]
    assert beyond.places_of("cornell") == [Place("cornell", "geom-gcn")]
    assert beyond.places_of("twitch-ptbr") == [Place("twitch-ptbr", "random")]
    assert beyond.places_of("synthetic-h0.3") == [Place("synthetic-h0.3", "random")]


def test_parts_are_taken_away_on_five_graphs_and_directions_where_there_are_some() -> None:
    rows = {place.column: dict(beyond.parts_of(WHOLE, place)) for place in PLACES}
    assert [column for column, parts in rows.items() if parts] == [place.column for place in (*WIKIPEDIA, *OTHERS)]
    assert PARTS.keys() - rows["cora"].keys() == {f"{WHOLE} -directions"}
    assert rows["squirrel, directed"] == PARTS
    assert dict(beyond.parts_of("mlp", SQUIRREL)) == {}


def test_a_search_begins_with_the_defaults_and_not_with_published_settings() -> None:
    options = dict(search("gcn-sl-cc", Place("texas", "geom-gcn")).options)
    assert options == METHODS["gcn-sl-cc"].options() | {"search_trials": 5, "search_splits": 2}


def test_what_is_fixed_is_not_searched_for() -> None:
    assert beyond.fixed_options(search(WHOLE)) == []
    for part in PARTS.values():
        spec = search(WHOLE, **part)
        assert beyond.fixed_options(spec) == [*part]
        assert beyond.searched_method(spec) == METHODS[WHOLE].with_options(**part)
        assert spec.key != search(WHOLE).key


def test_directions_are_for_methods_that_use_them() -> None:
    assert search(WHOLE).directed
    assert search("mlp") == search("mlp", SQUIRREL._replace(directed=False))


def test_the_metric_chooses_the_epoch_too() -> None:
    spec = search("mlp", Place("minesweeper", "stored", metric="roc-auc"))
    assert (spec.metric, dict(spec.options)["monitor"]) == ("roc-auc", "roc-auc")
    assert (search("mlp").metric, dict(search("mlp").options)["monitor"]) == ("accuracy", "loss")


def test_runs_have_what_was_found() -> None:
    spec = search(WHOLE, contrast=0.0)
    done = RunResult(spec, "ok", {"options": {"lr": 0.02}, "trials": 5})
    runs = beyond.runs_after(done, 12)
    assert [run.run for run in runs] == list(range(10)), "there are ten geom-gcn splits"
    assert dict(runs[0].options) == METHODS[WHOLE].options() | {"contrast": 0.0, "lr": 0.02}
    assert {(run.task, run.directed, run.seed) for run in runs} == {("train", True, 3)}
    random = search("mlp", Place("debian", "random"))
    assert len(beyond.runs_after(RunResult(random, "ok", {"options": {}}), 12)) == 12
    assert beyond.runs_after(RunResult(spec, "failed"), 10) == ()
