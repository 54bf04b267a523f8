import pytest
import torch

from gcnsl.auto.blend import Blend, Member, OutOfFold
from gcnsl.auto.candidates import Candidate
from gcnsl.auto.fit_costs import PER_ENTRY
from gcnsl.auto.stored_member import below, restored_blend, restored_fits, stored_blend, stored_fit
from gcnsl.methods import fit, prepare
from gcnsl.training import History

from .cases import small_problem

CPU = torch.device("cpu")


def fits(problem, method: str, folds: int = 2) -> tuple:
    candidate = Candidate(method, method, {"epochs": 2})
    prepared = prepare(candidate.resolved, problem.graph, rows=problem.learned, seed=0, device=CPU)
    masks = (problem.masks(fold) for fold in range(folds))
    return tuple(fit(prepared, train_mask=train, val_mask=val, seed=0) for train, val in masks)


@pytest.mark.parametrize("method", PER_ENTRY)
def test_models_are_restored_bit_for_bit(method) -> None:
    problem = small_problem()
    given = fits(problem, method)
    again = restored_fits([stored_fit(each) for each in given], problem.graph, CPU)
    assert again[0].prepared is again[1].prepared
    for one, other in zip(given, again, strict=True):
        assert torch.equal(one.logits(), other.logits())
        assert one.history == other.history


def test_an_ensemble_is_restored_bit_for_bit() -> None:
    problem = small_problem()
    nodes = problem.validated(2).nonzero().flatten()
    judged = OutOfFold(nodes, torch.rand(len(nodes), 3))
    members = (Member("x", 0.7, 1.5, fits(problem, "logistic")), Member("y", 0.3, 0.8, fits(problem, "gcn")))
    blend = Blend(members, History(seconds=3.0, stopped="minutes"), problem.graph, 0.9, None, judged)
    stored = stored_blend(blend, {"quality": "fast"})
    assert not any(name.startswith(("member.0.1.features", "member.0.1.precomputed")) for name in stored.tensors)
    again = restored_blend(stored, problem.graph, CPU)
    assert torch.equal(again.logits(), blend.logits())
    assert [(m.name, m.weight, m.temperature) for m in again.members] == [("x", 0.7, 1.5), ("y", 0.3, 0.8)]
    assert again.history == blend.history
    assert all(map(torch.equal, again.out_of_fold, judged))


@pytest.mark.parametrize(
    "damage",
    [
        lambda plain: plain.update(temperature=None),
        lambda plain: plain["members"][0].update(weight=-1),
        lambda plain: plain["members"][0].update(temperature="x"),
        lambda plain: plain["options"].update(quality="excellent"),
        lambda plain: plain["history"].update(seconds="long"),
    ],
)
def test_a_damaged_ensemble_is_refused(damage) -> None:
    problem = small_problem()
    blend = Blend((Member("x", 1.0, 1.0, fits(problem, "logistic")),), History(stopped="minutes"), problem.graph)
    stored = stored_blend(blend, {"quality": "fast"})
    damage(stored.plain)
    with pytest.raises(ValueError, match="must be"):
        restored_blend(stored, problem.graph, CPU)


def test_names_below_a_part() -> None:
    tensors = {"a.b": torch.tensor(1), "ab.c": torch.tensor(2)}
    assert below("a", tensors) == {"b": torch.tensor(1)}
