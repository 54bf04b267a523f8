import pytest

from gcnsl import InputError
from gcnsl.experiments import paper
from gcnsl.experiments.hyperparameters import write_settings
from gcnsl.experiments.plan import COMPARED, EXPERIMENTS, Scope, plan

pytestmark = pytest.mark.usefixtures("all_methods")


@pytest.fixture
def no_settings(tmp_path):
    return tmp_path / "none"


@pytest.mark.parametrize(
    ("name", "cells", "runs"),
    [
        ("accuracy", 10 * 8 * 2, 10 * 8 * 2 * 10),
        ("ablation", 4 * 2 * 8, 4 * 2 * 8 * 10),
        ("spectral", 2 * 2 * 8, 2 * 2 * 8 * 10),
        ("homophily", 5 * 8, 2 * 8 * 10),
        ("depth", 6, 6 * 10),
        ("runtime", 3 * 8, 3 * 8 * 3),
        ("synthetic", 10 * 11, 10 * 11 * 10),
    ],
)
def test_counts(no_settings, name, cells, runs) -> None:
    experiment = plan(name, Scope(settings=no_settings))
    assert len(experiment.cells) == cells
    assert len(experiment.specs) == len({spec.key for spec in experiment.specs}) == runs


def test_experiments_share_runs(no_settings) -> None:
    scope = Scope(settings=no_settings)
    every = {spec.key for name in EXPERIMENTS for spec in plan(name, scope).specs}
    new = 1600 + (640 - 160) + (320 - 160) + 0 + 60 + 72 + 1100
    assert len(every) == new, "the full models of three tables and the learned graphs are runs of the accuracy table"


def test_cells_have_the_paper_s_number(no_settings) -> None:
    scope = Scope(settings=no_settings)
    cells = {(c.row, c.column, c.split): c.paper for c in plan("accuracy", scope).cells}
    assert cells["mlp", "texas", "geom-gcn"] == cells["mlp", "texas", "random"] == (81.9, 4.8)
    assert cells["nlgnn", "texas", "random"] is None
    ablation = {(c.row, c.column): c.paper for c in plan("ablation", scope).cells}
    assert ablation["gcn-sl-av A", "cora"] == (88.7, 0.6)
    assert ablation["gcn-sl-cc A*", "cora"] is None
    homophily = {(c.row, c.column): c.paper for c in plan("homophily", scope).cells}
    assert homophily["original", "texas"] == (0.11, None)
    assert homophily["gcn-sl-cc A*", "texas"] is None
    assert {c.row for c in plan("runtime", scope).cells if c.column == "pubmed" and c.paper is None} == {"sc"}


def test_options_are_complete_and_changed_where_they_should_be(no_settings) -> None:
    scope = Scope(settings=no_settings)
    for cell in plan("ablation", scope).cells:
        options = dict(cell.runs[0].options)
        assert (options["use_adjacency"], options["use_reconnected"]) == (
            "A" in cell.row.split()[1].split("+"),
            "A*" in cell.row,
        )
        assert options.items() >= paper.hyperparameters(cell.column).items()
        assert options["merge"] == ("concat" if "cc" in cell.row else "average")
    without = [dict(c.runs[0].options)["n_components"] for c in plan("spectral", scope).cells if "without" in c.row]
    assert without == [0] * 16
    depth = {c.row: dict(c.runs[0].options) for c in plan("depth", scope).cells}
    assert [depth[f"gcn-{k}"]["num_layers"] for k in (3, 4, 5)] == [3, 4, 5]
    assert [depth[f"gcn-sl-cc-{k}"]["rounds"] for k in (3, 4, 5)] == [3, 4, 5]
    assert all(options["epochs"] == options["patience"] for options in depth.values())
    assert all(spec.curves for spec in plan("depth", scope).specs)


def test_settings_win_over_the_paper_unless_the_paper_s_are_asked_for(tmp_path) -> None:
    write_settings(tmp_path / "texas.toml", "gcn-sl-cc", {"lr": 0.5, "feature_norm": "none"}, {"trials": 3})
    searched, printed = (
        {c.column: dict(c.runs[0].options) for c in plan("accuracy", scope).cells}
        for scope in (
            Scope(methods=["gcn-sl"], settings=tmp_path, splits=["random"]),
            Scope(methods=["gcn-sl"], settings=tmp_path, splits=["random"], paper_hparams=True),
        )
    )
    assert (searched["texas"]["lr"], searched["texas"]["feature_norm"]) == (0.5, "none")
    assert (printed["texas"]["lr"], printed["texas"]["feature_norm"]) == (0.01, "l2")
    assert searched["cora"] == printed["cora"]


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


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ({"runs": 0}, r"runs\(0\) must be >= 1"),
        ({"runs": 11, "splits": ["geom-gcn"]}, r"runs\(11\) must be <= 10"),
        ({"methods": ["gnc"]}, r"method\('gnc'\) must be one of"),
        ({"datasets": ["corra"]}, r"dataset\('corra'\) must be one of cora, "),
        ({"splits": ["public"]}, r"split\('public'\) does not exist for cora"),
        (
            {"splits": ["geom-gcn"], "datasets": ["debian"]},
            r"split\('geom-gcn'\) does not exist for debian: use random",
        ),
    ],
)
def test_bad_scopes_are_refused(scope, message) -> None:
    with pytest.raises(InputError, match=message):
        Scope(**scope)


def test_unknown_experiment() -> None:
    with pytest.raises(InputError, match=r"experiment\('speed'\) must be one of accuracy, ablation"):
        plan("speed")
