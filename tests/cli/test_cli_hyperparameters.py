import pytest

from gcnsl import InputError
from gcnsl.cli.hyperparameters import Start, classifier_options, methods_with, read_options
from gcnsl.experiments import hyperparameters
from gcnsl.methods import METHODS


def test_options_are_keys_and_values() -> None:
    assert read_options(None) == {}
    assert read_options(["lr=0.1", " rounds = 2 ", "a=b=c"]) == {"lr": "0.1", "rounds": "2", "a": "b=c"}
    for wrong in ("lr", "=0.1", ""):
        with pytest.raises(InputError, match="is no setting: write KEY=VALUE"):
            read_options([wrong])


def test_the_papers_graphs_have_the_papers_values() -> None:
    assert Start("cora").method("gcn-sl-av").config.n_anchors == 700
    assert Start("cora").method("gcn-sl-av").config.merge == "average"
    assert Start("cora").method("mlp") == METHODS["mlp"]


@pytest.mark.parametrize("graph", [None, "cora.npz", "debian"])
def test_other_graphs_have_the_defaults(graph) -> None:
    assert Start(graph).method("gcn-sl-cc") == METHODS["gcn-sl-cc"]


@pytest.fixture
def found(monkeypatch, tmp_path):
    """What a search found on two graphs, as part of the package."""
    for graph in ("cora", "debian"):
        (tmp_path / f"{graph}.toml").write_text("[gcn-sl-cc.options]\nepsilon = 0.77\n[mlp.options]\nlr = 0.5\n")
    monkeypatch.setattr(hyperparameters, "settings_path", lambda name, folder=None: tmp_path / f"{name}.toml")
    return tmp_path / "cora.toml"


@pytest.mark.parametrize("graph", ["cora", "debian"])
@pytest.mark.usefixtures("found")
def test_searched_ones_on_demand_and_for_all_methods(graph) -> None:
    plain, searched = Start(graph), Start(graph, searched=True)
    assert (plain.method("gcn-sl-cc").config.epsilon == 0.77, plain.method("mlp").training.lr == 0.5) == (False, False)
    assert (searched.method("gcn-sl-cc").config.epsilon, searched.method("mlp").training.lr) == (0.77, 0.5)


def test_settings_from_a_file(found) -> None:
    for start in (Start(None, settings=found), Start("texas", settings=found)):
        assert start.method("gcn-sl-cc").config.epsilon == 0.77
    assert Start("texas", settings=found).method("gcn-sl-cc").config.n_components == 35, "what the file leaves open"
    assert Start(None, settings=found).method("gcn") == METHODS["gcn"]
    with pytest.raises(InputError, match=r"absent\.toml': there is no such file"):
        Start(settings=found.with_name("absent.toml")).method("mlp")


def test_the_classifier_takes_what_it_knows() -> None:
    options = classifier_options(Start("texas"), {"lr": "0.5"})
    assert (options["lr"], options["epsilon"], options["hidden_channels"]) == (0.5, 0.8, 32)
    for unknown in ("epsilom", "monitor"):
        with pytest.raises(InputError, match=f"--set {unknown}: there is no such option; there are hidden_channels, "):
            classifier_options(Start(), {unknown: "1"})


def test_options_for_one_method_and_for_all() -> None:
    given = {"lr": "0.5", "gcn-sl.epsilon": "0.7", "gcn-sl-av.lr": "0.2"}
    methods = methods_with(["gcn-sl", "gcn-sl-av", "gcn-sl-cc"], Start(), given)
    assert list(methods) == ["gcn-sl-cc", "gcn-sl-av"], "each once, by its own name"
    assert methods["gcn-sl-cc"] == METHODS["gcn-sl-cc"].with_options(lr=0.5, epsilon=0.7)
    assert methods["gcn-sl-av"] == METHODS["gcn-sl-av"].with_options(lr=0.2)
    with pytest.raises(InputError, match="'mlp2' is not compared; the models are gcn-sl-cc"):
        methods_with(["gcn-sl"], Start(), {"mlp2.lr": "1"})
