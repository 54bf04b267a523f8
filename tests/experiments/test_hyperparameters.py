import pytest

from gcnsl import InputError
from gcnsl.datasets.synthetic import synthetic_name
from gcnsl.experiments import paper
from gcnsl.experiments.hyperparameters import options_for, read_settings, settings_like, settings_path, write_settings
from gcnsl.experiments.plan import HOMOPHILIES
from gcnsl.methods import METHODS


def test_settings_come_back_and_leave_others_alone(tmp_path) -> None:
    path = settings_path("cora", tmp_path)
    first = {"lr": 1e-05, "feature_norm": "l2", "self_loops": False, "rounds": 4, "plateau_factor": None}
    write_settings(path, "gcn-sl-cc", first, {"validation_accuracy": 0.8871, "trials": 100})
    write_settings(path, "gcn-sl-av", {"lr": 0.5}, {"trials": 1})
    write_settings(path, "gcn-sl-av", {"lr": 0.25}, {"trials": 2})
    assert read_settings(path) == {
        "gcn-sl-av": {"options": {"lr": 0.25}, "search": {"trials": 2}},
        "gcn-sl-cc": {
            "options": {**first, "plateau_factor": "none"},
            "search": {"validation_accuracy": 0.8871, "trials": 100},
        },
    }
    assert '[gcn-sl-cc.options]\nlr = 1e-05\nfeature_norm = "l2"\nself_loops = false\n' in path.read_text()
    assert options_for("gcn-sl-cc", "cora", folder=tmp_path)["plateau_factor"] is None


def test_settings_of_a_like_method_are_found(tmp_path) -> None:
    path = tmp_path / "cora.toml"
    assert settings_like("gcn-sl-av", path) == []
    for method, options in (("gcn-sl-cc", {"epsilon": 0.5}), ("gcn-sl-av", {"lr": 0.1}), ("mixhop", {"dropout": 0.9})):
        write_settings(path, method, options, {})
    assert settings_like("gcn-sl-av", path) == [{"lr": 0.1}, {"epsilon": 0.5}]


def test_searched_then_the_paper_s_then_defaults(tmp_path) -> None:
    write_settings(tmp_path / "cora.toml", "gcn-sl-cc", {"epsilon": 0.99}, {})
    options = options_for("gcn-sl-cc", "cora", folder=tmp_path)
    assert options == METHODS["gcn-sl-cc"].options() | paper.hyperparameters("cora") | {"epsilon": 0.99}
    assert options_for("gcn-sl-cc", "cora", folder=tmp_path, paper_hparams=True)["epsilon"] == 0.9
    assert options_for("gcn-sl-cc", "debian", folder=tmp_path) == METHODS["gcn-sl-cc"].options()


def test_a_search_counts_where_the_paper_has_no_values(tmp_path) -> None:
    write_settings(tmp_path / "debian.toml", "gcn-sl-cc", {"epsilon": 0.77}, {})
    assert options_for("gcn-sl-cc", "debian", folder=tmp_path, paper_hparams=True)["epsilon"] == 0.77


def test_bad_settings_are_named_with_their_file(tmp_path) -> None:
    (tmp_path / "cora.toml").write_text("[gcn-sl-cc.options]\nspeed = 3\n")
    with pytest.raises(InputError, match=r"cora.toml: speed: GCNSL has no such option"):
        options_for("gcn-sl-cc", "cora", folder=tmp_path)
    (tmp_path / "texas.toml").write_text("[gcn-sl-cc\n")
    with pytest.raises(InputError, match=r"texas.toml is no TOML file"):
        options_for("gcn-sl-cc", "texas", folder=tmp_path)


@pytest.mark.parametrize("dataset", [*paper.DATASETS, *map(synthetic_name, HOMOPHILIES)])
def test_settings_that_are_part_of_the_package_can_be_used(dataset) -> None:
    assert {"gcn-sl-cc", "gcn-sl-av", "h2gcn-1", "mixhop"} <= read_settings(settings_path(dataset)).keys()
    for method in METHODS:
        assert options_for(method, dataset).keys() == METHODS[method].options().keys()
