import pytest

from gcnsl import InputError
from gcnsl.methods import METHODS, resolve
from gcnsl.methods.resolver import published_path, read_settings, write_settings

PUBLISHED = sorted(published_path("cora").parent.glob("*.toml"))


def test_explicit_options_then_a_file_then_published_ones_then_defaults(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    defaults = METHODS["gcn-sl-cc"].options()
    published = read_settings(published_path("cora"))["gcn-sl-cc"]["options"]
    mine = {"epsilon": 0.123, "rounds": 7}
    write_settings(file, "gcn-sl-cc", mine, {})
    assert resolve("gcn-sl-cc").options() == defaults
    assert resolve("gcn-sl-cc", benchmark="cora").options() == defaults | published
    assert resolve("gcn-sl", benchmark="cora", settings=file).options() == defaults | published | mine
    last = resolve("gcn-sl-cc", benchmark="cora", settings=file, options={"rounds": 3})
    assert last.options() == defaults | published | mine | {"rounds": 3}
    assert resolve("gcn-sl-cc", settings=file).options() == defaults | mine
    assert resolve("gcn-sl-cc", options={"lr": 1}).options() == defaults | {"lr": 1.0}


def test_a_metric_chooses_epochs_unless_the_options_say_what_does(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    write_settings(file, "gcn", {"monitor": "accuracy"}, {})
    assert resolve("gcn", metric="roc-auc").training.monitor == "roc-auc"
    assert resolve("gcn", settings=file, metric="roc-auc").training.monitor == "roc-auc"
    assert resolve("gcn", settings=file).training.monitor == "accuracy"
    assert resolve("gcn", metric="roc-auc", options={"monitor": "loss"}).training.monitor == "loss"
    with pytest.raises(InputError, match=r"metric\('loss'\) must be one of accuracy"):
        resolve("gcn", metric="loss")


def test_a_file_without_the_method_names_those_it_has_and_the_remedy(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    write_settings(file, "gcn", {"dropout": 0.25}, {})
    write_settings(file, "mlp", {"dropout": 0.25}, {})
    with pytest.raises(InputError) as refusal:
        resolve("gat", settings=file)
    assert str(refusal.value) == (
        f"{file} has no settings for gat, only for gcn, mlp: `gcnsl search --method gat` finds some"
    )
    file.write_text("")
    with pytest.raises(InputError, match="has no settings for gat, only for no method"):
        resolve("gat", settings=file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[gcn\n", r"mine\.toml is not a TOML file \(.*\): fix it, or delete it to use defaults"),
        ("a = " + "[" * 5000, r"mine\.toml is not a TOML file"),
        (b"\xff", r"mine\.toml is not a TOML file"),
        ("[gcm.options]\nlr = 1\n", r"mine\.toml, table \[gcm\]: method\('gcm'\) must be one of mlp, gcn"),
        ("gcn = 3\n", r"mine\.toml has no table \[gcn\.options\]: add it with the options, or remove gcn"),
        ("[gcn]\noptions = 3\n", r"mine\.toml has no table \[gcn\.options\]"),
        ("[gcn.options]\nspeed = 3\n", r"mine\.toml, table \[gcn\.options\]: speed: gcn has no such option"),
        ("[gcn.options]\nlr = -1\n", r"mine\.toml, table \[gcn\.options\]: lr\(-1\) must be > 0"),
    ],
)
def test_what_is_no_settings_file_is_refused_by_name(tmp_path, content, message) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        resolve("gcn", settings=file)


def test_settings_come_back_and_leave_others_alone(tmp_path) -> None:
    path = tmp_path / "new folder" / "cora.toml"
    first = {"lr": 1e-05, "feature_norm": "l2", "self_loops": False, "rounds": 4, "plateau_factor": None}
    write_settings(path, "gcn-sl-cc", first, {"validation_accuracy": 0.8871, "trials": 100})
    write_settings(path, "gcn-sl-av", {"lr": 0.5}, {"trials": 1})
    write_settings(path, "gcn-sl-av", {"lr": 0.25}, {"trials": 2})
    write_settings(path, "mixhop", {"powers": (0, 2)}, {"note": "naïve 🙂"})
    assert read_settings(path) == {
        "gcn-sl-av": {"options": {"lr": 0.25}, "search": {"trials": 2}},
        "gcn-sl-cc": {
            "options": {**first, "plateau_factor": "none"},
            "search": {"validation_accuracy": 0.8871, "trials": 100},
        },
        "mixhop": {"options": {"powers": [0, 2]}, "search": {"note": "naïve 🙂"}},
    }
    assert '[gcn-sl-cc.options]\nlr = 1e-05\nfeature_norm = "l2"\nself_loops = false\n' in path.read_text()
    assert resolve("gcn-sl-cc", settings=path).training.plateau_factor is None
    assert resolve("mixhop", settings=path).config.powers == (0, 2)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_settings_can_be_used(path) -> None:
    tables = read_settings(path)
    assert {"gcn-sl-cc", "gcn-sl-av", "h2gcn-1", "mixhop"} <= tables.keys()
    for name, parts in tables.items():
        resolved = resolve(name, benchmark=path.stem).options()
        assert resolved == METHODS[name].with_options(**parts["options"]).options()
