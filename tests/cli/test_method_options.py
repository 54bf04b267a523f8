import json

import pytest

from gcnsl import InputError, cli
from gcnsl.cli.shared_options import read_options, resolve_all
from gcnsl.methods import METHODS, resolve
from gcnsl.methods.search_space import space_of
from gcnsl.training import METRICS


@pytest.mark.parametrize("method", ["gcn-sl-plus", "boosted-trees"])
def test_every_option_is_listed_with_meaning_range_and_default(gcnsl, method) -> None:
    code, out, err = gcnsl("options", method)
    assert (code, err) == (0, "")
    answer = json.loads(gcnsl("options", method, "--json")[1])
    assert answer.keys() == METHODS[method].options().keys()
    for name, option in answer.items():
        assert name in out
        assert option["meaning"].endswith(".")
        assert option["range"]
    searched = {name for name, option in answer.items() if option["search"] is not None}
    assert searched == space_of(method).keys()


def test_all_methods_and_metrics_are_listed(gcnsl) -> None:
    _, out, _ = gcnsl("options")
    assert all(name in out for name in (*METHODS, *METRICS))
    assert json.loads(gcnsl("options", "--json")[1])["gcn-sl-cc"] == ["gcn-sl"]


def test_an_unknown_method_is_one_line(gcnsl) -> None:
    code, _, err = gcnsl("options", "gcm")
    assert code == cli.BAD_INPUT
    assert err.startswith("Error: METHOD gcm must be one of mlp, gcn, ")


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
