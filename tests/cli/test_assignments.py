import pytest

from gcnsl import InputError
from gcnsl.cli.assignments import read_options, resolve_all
from gcnsl.methods import METHODS, resolve


def test_options_are_keys_and_values_as_toml_writes_them() -> None:
    assert read_options(None) == {}
    given = ["lr=0.1", " rounds = 2 ", "merge=average", "self_loops=true", "powers=[0, 2]", "a=b=c"]
    assert read_options(given) == {
        "lr": 0.1,
        "rounds": 2,
        "merge": "average",
        "self_loops": True,
        "powers": [0, 2],
        "a": "b=c",
    }
    for wrong in ("lr", "=0.1", ""):
        with pytest.raises(InputError, match="is not a setting: write KEY=VALUE"):
            read_options([wrong])


def test_options_for_one_method_and_for_all() -> None:
    given = {"lr": 0.5, "gcn-sl.epsilon": 0.7, "gcn-sl-av.lr": 0.2}
    methods = resolve_all(["gcn-sl", "gcn-sl-av", "gcn-sl-cc"], None, None, given)
    assert list(methods) == ["gcn-sl-cc", "gcn-sl-av"], "each once, by its own name"
    assert methods["gcn-sl-cc"] == METHODS["gcn-sl-cc"].with_options(lr=0.5, epsilon=0.7)
    assert methods["gcn-sl-av"] == METHODS["gcn-sl-av"].with_options(lr=0.2)
    with pytest.raises(InputError, match="'mlp2' is not compared; the models are gcn-sl-cc"):
        resolve_all(["gcn-sl"], None, None, {"mlp2.lr": 1})


def test_a_file_must_have_settings_for_one_of_them(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[gcn-sl-cc.options]\nepsilon = 0.77\n")
    methods = resolve_all(["gcn-sl", "mlp"], "texas", path, {})
    assert methods["gcn-sl-cc"].config.epsilon == 0.77
    assert methods["mlp"] == resolve("mlp", benchmark="texas")
    with pytest.raises(InputError, match=r"mine\.toml has settings for none of mlp, gcn: give another file"):
        resolve_all(["mlp", "gcn"], None, path, {})
