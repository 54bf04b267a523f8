from types import SimpleNamespace

from gcnsl.estimator.explained_member import explained_member
from gcnsl.nn import MLP
from gcnsl.plain.boosted_trees import BoostedTrees
from gcnsl.plain.class_votes import LabelPropagation
from gcnsl.selection import Blend
from gcnsl.selection.blend import Member
from gcnsl.training import History

TREES, VOTES, NETWORK = BoostedTrees(2), LabelPropagation(4, 2), MLP(3, 4, 2)


def of(*models) -> tuple[object, str]:
    members = tuple(
        Member(type(model).__name__, 1 / len(models), 1.0, (SimpleNamespace(model=model),)) for model in models
    )
    found, words = explained_member(SimpleNamespace(fitted_=Blend(members, History(), None)))
    return found.fitted_.model, words


def test_the_heaviest_that_has_reasons_speaks() -> None:
    assert of(TREES, VOTES, NETWORK) == (NETWORK, "MLP, 33% of the ensemble,")
    assert of(VOTES, TREES) == (VOTES, "LabelPropagation, 50% of the ensemble,")
    assert of(TREES) == (TREES, "BoostedTrees")


def test_a_single_model_speaks_for_itself() -> None:
    fitted = SimpleNamespace(prepared=SimpleNamespace(method=SimpleNamespace(name="gcn")))
    classifier = SimpleNamespace(fitted_=fitted)
    assert explained_member(classifier) == (classifier, "gcn")
