from gcnsl.experiments import paper
from gcnsl.experiments.hyperparameters import options_for
from gcnsl.experiments.literature import hyperparameters
from gcnsl.methods import METHODS


def test_geom_gcn_has_its_own_widths_and_neighbourhoods() -> None:
    cora, squirrel, texas = (options_for("geom-gcn", name) for name in ("cora", "squirrel", "texas"))
    assert (cora["hidden_channels"], cora["weight_decay"], cora["source"]) == (16, 5e-6, "published")
    assert (squirrel["hidden_channels"], squirrel["source"]) == (48, "computed")
    assert (texas["hidden_channels"], texas["weight_decay"], texas["source"]) == (32, 5e-5, "published")


def test_files_that_tell_classes_are_not_used() -> None:
    assert {options_for("geom-gcn", name)["source"] for name in ("citeseer", "pubmed")} == {"computed"}


def test_other_methods_and_graphs_have_nothing_of_their_own() -> None:
    assert hyperparameters("geom-gcn", "debian") == {}
    assert all(
        hyperparameters(method, name) == {} for method in METHODS if method != "geom-gcn" for name in paper.DATASETS
    )
