import pytest

from gcnsl import InputError
from gcnsl.cli.hyperparameters import classifier_options, method_on, methods_with, read_settings
from gcnsl.experiments import hyperparameters
from gcnsl.methods import METHODS


def test_settings_are_keys_and_values() -> None:
    assert read_settings(None) == {}
    assert read_settings(["lr=0.1", " rounds = 2 ", "a=b=c"]) == {"lr": "0.1", "rounds": "2", "a": "b=c"}
    for wrong in ("lr", "=0.1", ""):
        with pytest.raises(InputError, match="is no setting: write KEY=VALUE"):
            read_settings([wrong])


def test_the_papers_graphs_have_the_papers_values() -> None:
    assert method_on("gcn-sl-av", "cora", searched=False).config.n_anchors == 700
    assert method_on("gcn-sl-av", "cora", searched=False).config.merge == "average"


@pytest.mark.parametrize("graph", [None, "cora.npz", "debian"])
def test_other_graphs_have_the_defaults(graph) -> None:
    assert method_on("gcn-sl-cc", graph, searched=False) == METHODS["gcn-sl-cc"]


def test_searched_ones_on_demand(monkeypatch, tmp_path) -> None:
    (tmp_path / "cora.toml").write_text("[gcn-sl-cc.options]\nepsilon = 0.77\n")
    monkeypatch.setattr(hyperparameters, "settings_path", lambda name, folder=None: tmp_path / f"{name}.toml")
    assert method_on("gcn-sl-cc", "cora", searched=True).config.epsilon == 0.77
    assert method_on("gcn-sl-cc", "cora", searched=False).config.epsilon == 0.9


def test_the_classifier_takes_what_it_knows() -> None:
    options = classifier_options("texas", {"lr": "0.5"}, searched=False)
    assert (options["lr"], options["epsilon"], options["hidden_channels"]) == (0.5, 0.8, 32)
    for unknown in ("epsilom", "monitor"):
        with pytest.raises(InputError, match=f"--set {unknown}: there is no such option; there are hidden_channels, "):
            classifier_options(None, {unknown: "1"}, searched=False)


def test_settings_for_one_method_and_for_all() -> None:
    settings = {"lr": "0.5", "gcn-sl.epsilon": "0.7", "gcn-sl-av.lr": "0.2"}
    methods = methods_with(["gcn-sl", "gcn-sl-av", "gcn-sl-cc"], None, settings, searched=False)
    assert list(methods) == ["gcn-sl-cc", "gcn-sl-av"], "each once, by its own name"
    assert methods["gcn-sl-cc"] == METHODS["gcn-sl-cc"].with_options(lr=0.5, epsilon=0.7)
    assert methods["gcn-sl-av"] == METHODS["gcn-sl-av"].with_options(lr=0.2)
    with pytest.raises(InputError, match="'mlp2' is not compared; the models are gcn-sl-cc"):
        methods_with(["gcn-sl"], None, {"mlp2.lr": "1"}, searched=False)
