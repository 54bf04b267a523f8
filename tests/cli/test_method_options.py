import json

import pytest

from gcnsl import cli
from gcnsl.methods import METHODS
from gcnsl.methods.registry import space_of
from gcnsl.training import METRICS


@pytest.mark.parametrize("method", METHODS)
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
